#!/bin/bash
# Packages: python3. Needs: python3
exec python3 "${0%/*}/../processes.py" forkserver "trecr-panel-$$" # waits for go
