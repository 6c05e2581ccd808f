#!/bin/bash
# Packages: fp-compiler. Needs: fpc
# Free Pascal: a program that makes system calls itself, without the C library.
cat >work.pas <<'END'
program work;
{$mode objfpc}
uses sysutils;
var t: array[0..996] of ansistring; s, k: int64; sum: int64; i: integer; f: text;
begin
  writeln('ready'); flush(output);
  assign(f, 'numbers'); rewrite(f);
  s := 1;
  for k := 1 to 120000000 do begin
    s := (s * 31 + k) mod 1000003;
    if k mod 16 = 0 then t[s mod 997] := inttostr(s) + '.' + inttostr(k);
    if k mod 1000 = 0 then writeln(f, s);
  end;
  close(f); sum := 0;
  for i := 0 to 996 do sum := sum + length(t[i]) * i;
  writeln(s, ' ', sum, ' ', t[5]);
  reset(f); sum := 0;
  while not eof(f) do begin readln(f, s); sum := sum + s end;
  writeln(sum);
end.
END
fpc -v0 -O2 work.pas >build.log 2>&1 || exit
./work
echo "status $?"
