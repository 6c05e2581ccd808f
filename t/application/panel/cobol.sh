#!/bin/bash
# Packages: gnucobol4. Needs: cobc
# COBOL: decimal arithmetic.
cat >work.cob <<'END'
       IDENTIFICATION DIVISION.
       PROGRAM-ID. WORK.
       DATA DIVISION.
       WORKING-STORAGE SECTION.
       01 K PIC 9(9).
       01 R PIC 9(4).
       01 S PIC 9(15)V99 VALUE 1.25.
       01 T.
          05 E PIC 9(9)V99 OCCURS 1000 TIMES.
       PROCEDURE DIVISION.
           DISPLAY "ready" UPON SYSOUT
           PERFORM VARYING K FROM 1 BY 1 UNTIL K > 2000000
              COMPUTE S ROUNDED = FUNCTION MOD(S * 31 + K, 1000003)
              COMPUTE R = FUNCTION MOD(K, 1000) + 1
              ADD S TO E(R) ON SIZE ERROR MOVE 0 TO E(R) END-ADD
           END-PERFORM
           DISPLAY S " " E(1) " " E(500) " " E(1000)
           STOP RUN.
END
cobc -x -o work work.cob || exit
./work
echo "status $?"
