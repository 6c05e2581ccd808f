#!/bin/bash
# Packages: wine wine64. Needs: wine. Options: --save-files
# Windows' shell, with the server that stands for its kernel; a batch file that counts until it is to end.
export TMPDIR=$PWD HOME=$PWD WINEPREFIX=$PWD/prefix WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' DISPLAY=
unset XDG_RUNTIME_DIR
wine wineboot -i >boot.log 2>&1
cat >count.bat <<'END'
@echo off
set /a n=0
set /a x=1
:more
set /a n=n+1
set /a x=(x*1103+12345) %% 1000003
if %n%==100 >early.txt echo %x%
if not exist started.txt >started.txt echo yes
if exist go if %n% geq 3000 goto end
if %n% geq 3000 set /a n=100
if %n%==100 set /p x=<early.txt
goto more
:end
echo %x%
reg add HKCU\Software\Panel /v x /d %x% /f >nul
reg query HKCU\Software\Panel /v x
END
sed -i 's/$/\r/' count.bat
wine cmd /c count.bat >said 2>wine.log &
child=$!
until [ -e started.txt ]; do kill -0 $child || exit 1; sleep 0.05; done
echo ready
wait $child
echo "status $?"
tr -d '\r' <said
wineserver -k
wineserver -w
