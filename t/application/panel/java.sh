#!/bin/bash
# Packages: default-jdk-headless. Needs: javac java
javac -d classes "${0%/*}/../Collect.java"
exec java -XX:+UseG1GC -Xmx128m -cp classes Collect # waits for go
