#!/bin/bash
# Packages: perl. Needs: perl
exec perl "${0%/*}/../words.pl" # waits for go
