#!/bin/bash
# Packages: default-jdk-headless. Needs: javac java
# ZGC maps its heap, a memfd, at several addresses, and exchanges the mappings.
javac -d classes "${0%/*}/../Collect.java"
exec java -XX:+UseZGC -Xmx256m -cp classes Collect # waits for go
