#!/bin/bash
# Packages: gnupg gpg-agent. Needs: gpg gpg-agent gpgconf. Options: --save-files
# An agent that keeps keys in locked memory, asked over a UNIX socket. It lets nobody attach (PR_SET_DUMPABLE): root only.
export GNUPGHOME=$PWD/g HOME=$PWD
mkdir -m 700 g
printf 'allow-loopback-pinentry\nmax-cache-ttl 100000\ndefault-cache-ttl 100000\n' >g/gpg-agent.conf
ask() { gpg --batch --quiet --no-tty "$@" 2>>gpg.log; }
gpg-agent --daemon >/dev/null 2>agent.log 9>&-
ask --pinentry-mode loopback --passphrase words --quick-generate-key 'Some One <a@b>' ed25519 sign 0
ask --pinentry-mode loopback --passphrase words --quick-add-key "$(ask --list-keys --with-colons | sed -n 's/^fpr:*\([^:]*\):/\1/p' | head -n 1)" cv25519 encr 0
echo 'some text' >text
# The passphrase is the agent's from here on.
ask --pinentry-mode loopback --passphrase words --encrypt -r a@b -o secret text && ask --pinentry-mode loopback --passphrase words -d secret | cksum
ask --pinentry-mode loopback --passphrase words --clearsign -o signed text
echo ready
while [ ! -e go ]; do
	ask -d secret >plain && cmp -s plain text || exit 1
	sleep 0.01
done
ask --yes --clearsign -o signed text && ask --verify signed && echo good
ask -d secret | cksum
gpg-connect-agent 'getinfo socket_name' /bye | grep -c /S.gpg-agent
gpgconf --kill gpg-agent
while pgrep -s 0 -x gpg-agent >/dev/null; do sleep 0.05; done
