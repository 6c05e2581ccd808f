(* Packages: ocaml-nox. Needs: ocaml. *)
let state = ref 1
let seen = Hashtbl.create 100
let work n =
  for _ = 1 to n do
    state := (!state * 69069 + 1) mod 1048576;
    let w = string_of_int (!state mod 997) in
    let was = try Hashtbl.find seen w with Not_found -> 0 in
    Hashtbl.replace seen w (was + !state mod 1000)
  done
let () =
  work 100000;
  print_endline "ready";
  while not (Sys.file_exists "go") do ignore (Array.init 10000 string_of_int) done;
  work 100000;
  Printf.printf "%d %d %d\n" !state (Hashtbl.length seen) (Hashtbl.fold (fun _ v a -> a + v) seen 0)
