#!/bin/bash
# The help of each tool and its page in man/ name the same options.
. "$(dirname "$0")/lib.sh"

# Containers have a man that shows nothing but a notice.
MANWIDTH=1000 man -l "$top/man/trecr.7" 2>/dev/null | grep -q trecr-restart && man_works=yes || man_works=

options() { # from standard input: every -x and --name
	grep -oE '(^|[^[:alnum:]_-])--?[[:alnum:]][[:alnum:]-]*' | grep -oE -- '--?[[:alnum:]][[:alnum:]-]*$' | sort -u
}
for t in trecr-run trecr-ckpt trecr-restart trecr-inspect; do
	help=$($t --help 2>help.err)
	is $? 0 "$t --help"
	is "$(cat help.err)" "" "goes to standard output"
	is "$($t -h)" "$help" "$t -h is the same"
	like "$help" "[Uu]sage: $t" "it starts with how it is used"
	ok "no line is longer than 80 columns" [ "$(wc -L <<<"$help")" -le 80 ]
	like "$($t --version)" "^(trecr|$t).* [0-9]+\.[0-9]+" "$t --version"
	page=$top/man/$t.1
	if ! ok "there is a page man/$t.1" [ -f "$page" ]; then continue; fi
	# As it is read: formatted, without hyphenation.
	shown=$(MANWIDTH=1000 MANROFFOPT= man --nh --nj -l "$page" 2>man.err | sed 's/.\x08//g; s/\x1b\[[0-9;]*m//g; s/‐/-/g; s/−/-/g')
	is "$(cat man.err)" "" "man has nothing to complain about"
	if [ -z "$man_works" ]; then
		skip "every option of $t -h is in the page" "man shows no page"
		continue
	fi
	in_help=$(sed -nE 's/^ *(-.*)/\1/p' <<<"$help" | sed -E 's/   .*//' | options)
	in_page=$(sed -n '/^OPTIONS/,/^[A-Z]/p' <<<"$shown" | sed -nE 's/^ {1,8}(-.*)/\1/p' | sed -E 's/   .*//' | options)
	is "$(comm -23 <(echo "$in_help") <(echo "$in_page") | xargs)" "" "every option of $t -h is in the page"
	is "$(comm -13 <(echo "$in_help") <(echo "$in_page") | xargs)" "" "and the other way round"
	ok "there are some" [ "$(wc -l <<<"$in_help")" -ge 4 ]
done
for p in trecr-image.5 trecr-slurm.7 trecr.7; do
	ok "man/$p" [ -f "$top/man/$p" ]
done
if [ -d "$top/man" ] && have groff; then
	is "$(groff -t -man -ww -z "$top"/man/*.[0-9] 2>&1)" "" "groff has nothing to complain about"
fi
done_testing
