#!/bin/bash
# Packages: default-jdk-headless. Needs: javac java
javac -d classes "${0%/*}/../Talk.java"
exec bash "${0%/*}/../talk.sh" '' java -cp classes Talk server -- java -cp classes Talk client # waits for go
