#!/bin/bash
# Packages: gnat. Needs: gnatmake
# Ada: tasks that meet, delays, and a protected object.
cat >work.adb <<'END'
with Ada.Text_IO; use Ada.Text_IO;
with Ada.Real_Time; use Ada.Real_Time;
procedure Work is
   protected Sum is
      procedure Add (K : Long_Long_Integer);
      function Value return Long_Long_Integer;
   private
      S : Long_Long_Integer := 0;
   end Sum;
   protected body Sum is
      procedure Add (K : Long_Long_Integer) is begin S := S + K; end Add;
      function Value return Long_Long_Integer is begin return S; end Value;
   end Sum;
   task type Worker is
      entry Start (N : Long_Long_Integer);
      entry Turn (V : out Long_Long_Integer);
   end Worker;
   task body Worker is
      S, Id : Long_Long_Integer := 0;
   begin
      accept Start (N : Long_Long_Integer) do S := N; Id := N; end Start;
      for T in 1 .. 24 loop
         for K in 1 .. 3_000_000 loop S := (S * 31 + Long_Long_Integer (K) + Id) mod 1_000_003; end loop;
         Sum.Add (S);
         accept Turn (V : out Long_Long_Integer) do V := S; end Turn;
      end loop;
   end Worker;
   W : array (1 .. 4) of Worker;
   V : Long_Long_Integer;
   Next : Time := Clock;
begin
   Put_Line ("ready"); Flush;
   for I in W'Range loop W (I).Start (Long_Long_Integer (I)); end loop;
   for T in 1 .. 24 loop
      for I in W'Range loop W (I).Turn (V); Put (V'Image); end loop;
      New_Line;
      Next := Next + Milliseconds (50);
      delay until Next;
   end loop;
   Put_Line (Sum.Value'Image);
end Work;
END
gnatmake -q -O1 work.adb || exit
./work
echo "status $?"
