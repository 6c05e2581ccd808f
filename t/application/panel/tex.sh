#!/bin/bash
# Packages: texlive-latex-base. Needs: pdflatex. Options: --save-dirs=doc
# Each run reads the files of the one before, and then writes them anew.
mkdir doc && cd doc || exit 1
export HOME=$PWD TEXMFVAR=$PWD/var SOURCE_DATE_EPOCH=1000000000 FORCE_SOURCE_DATE=1
{
	printf '\\documentclass{article}\\begin{document}\\tableofcontents\n'
	for ((k = 0; k < 250; k++)); do
		printf '\\section{S%d}\\label{s%d} See \\ref{s%d} and page \\pageref{s%d}.\n' $k $k $((249 - k)) $((k * 7 % 250))
		for ((n = 0; n < 6; n++)); do printf 'Some words, number %d, and $\\sum_{i=%d}^{%d} \\frac{x^i}{i!}$.\n\n' $n $n $k; done
	done
	printf '\\end{document}\n'
} >text.tex
echo ready
for _ in 1 2 3; do
	pdflatex -interaction=batchmode text.tex >/dev/null
	echo "status $?"
done
cksum text.pdf text.aux
