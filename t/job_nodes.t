#!/bin/bash
# A job on two nodes: its members reach each other by TCP, and nobody else gets in; when the network
# is cut, all go on. A node is a network namespace with a folder of its own for control sockets.
. "$(dirname "$0")/lib.sh"
. "$top/t/job_lib.sh"
apart -mn
am_root || skip_all "network namespaces need root"
have ip || skip_all "there is no ip (iproute2)"
export TRECR_TEST_CUT_MS=1500

# ---- nodes ----

sockets=/tmp/trecr-$(id -u)
[ -d "$sockets" ] || mkdir -m 700 "$sockets"
ip link set lo up
unshare -mnu sh -c 'mount -t tmpfs -o mode=700 sockets "$0" && hostname n2 && echo up && exec sleep 1000' \
	"$sockets" >node.up 2>node.err &
node=$!
await -t 60 -p $node node.up '^up$' >/dev/null || skip_all "no second node: $(cat node.err)"
ip link add tr1 type veth peer name tr2 netns $node 2>>node.err || skip_all "no veth: $(cat node.err)"
ip addr add 10.213.7.1/24 dev tr1
ip link set tr1 up
nsenter -t $node -n sh -c 'ip link set lo up; ip addr add 10.213.7.2/24 dev tr2; ip link set tr2 up'

on_node() { # 1|2 COMMAND...
	local n=$1
	shift
	[ "$n" = 1 ] || exec nsenter -t $node -n -m -u --wd="$PWD" "$@"
	exec "$@"
}

# start FIRST COMMAND...: two ranks; rank 0 on node FIRST.
start() {
	local first=$1 rank
	shift
	pids=()
	for rank in 0 1; do
		MPI_LOCALNRANKS=1 PMI_RANK=$rank PMI_SIZE=2 on_node $(((rank + first - 1) % 2 + 1)) \
			"$@" </dev/null >>"out.$rank" 2>>"err.$rank" &
		pids+=($!)
	done
}

start_job() { # [OPTION...]
	local rank
	mkfifo pause
	start 1 trecr-run -d ck "$@" "$victim/lockstep"
	for rank in 0 1; do
		await -t 60 -p "${pids[rank]}" "out.$rank" '^ready$' >/dev/null 2>>await.err || return
	done
}

restart_job() { # NODE-OF-RANK-0
	local rank
	rm -f round.* go
	start "$1" trecr-restart --rollback-files ck
	for rank in 0 1; do
		await_round $rank '' || return
	done
}

kill_all() {
	local pid
	{
		for pid in "${pids[@]}"; do
			kill -KILL "$pid" "$(program_of "$pid")"
			wait "$pid"
		done
	} 2>/dev/null
	true
}

member() { # RANK KEY: the value in its file
	sed -n "s/^$2 //p" "ck/ranks/$1"
}

# ---- saved on one node, restarted on another ----

step=

arena moved
step=start && start_job && step=checkpoint && job_checkpoint && first=$path && step="by the other node" &&
	(on_node 2 trecr-ckpt -t 60 ck >second 2>>ckpt.err) && kill_all &&
	step="restart, each on the other node" && restart_job 2 && job_checkpoint && kill_all &&
	step="second restart" && restart_job 1 && step="its end" && finish_job
job_result "two ranks on two nodes are saved by either, and restarted with their nodes exchanged"
is "${first##*/} $(sed 's/.*-//' second) $(cd ck && echo ckpt-*)" "ckpt-000001 000002 ckpt-000002 ckpt-000003" \
	"each request is one checkpoint"
is "$(cat err.*)" "" "nobody complains"
step=
is "$(stat -c %a ck/ranks/[01] | tr '\n' ' ')" "600 600 " "the members' files are their owner's"

arena ended
start_job && job_checkpoint -s && await -t 60 -p "${pids[0]}" && await -t 60 -p "${pids[1]}" &&
	restart_job 2 && finish_job
job_result "trecr-ckpt -s ends those of both nodes"

arena interface
start 1 trecr-run -d ck --interface tr1 true
wait "${pids[@]}"
is "$(cat err.0)" "" "an interface is chosen"
like "$(cat err.1)" 'has no interface tr1' "one that a node does not have is named"

# ---- peers that are no members ----

arena outsiders
start_job
port=$(member 1 port)
silent() {
	exec 7<>/dev/tcp/10.213.7.2/"$port" && cat <&7 >from_silent
}
silent &
quiet_one=$!
send() {
	timeout 10 bash -c 'exec 7<>/dev/tcp/10.213.7.2/$0 && cat >&7 && cat <&7' "$port" 2>>outsiders.err
}
is "$(head -c 100000 /dev/zero | send | wc -c)" 0 "nothing is said to who sends much"
is "$(printf 'GET / HTTP/1.0\r\n\r\n' | send | wc -c)" 0 "or speaks another language"
is "$(printf 'status\n' | send | wc -c)" 0 "or does not introduce itself"
cat >wrong.pl <<'EOF'
use IO::Socket::INET;
my ($port, $proof) = @ARGV;
my $s = IO::Socket::INET->new(PeerAddr => "10.213.7.2", PeerPort => $port, Timeout => 60) or die "$!";
print $s "trecr-job-1 " . "ab" x 32 . "\n";
my $answer = <$s>;
die "no answer" unless $answer =~ /^([0-9a-f]{64}) ([0-9a-f]{64})$/;
print $s ($proof eq "echo" ? $2 : $proof) . "\n" . "0" x 32 . " status\n";
print "end\n" unless defined <$s>;
EOF
is "$(perl wrong.pl "$port" "$(printf '%064d' 0)" 2>&1)" end "or does not know the secret"
is "$(perl wrong.pl "$port" echo 2>&1)" end "nor does it help to say what was heard"
many=()
for ((i = 0; i < 200; i++)); do
	exec {fd}<>/dev/tcp/10.213.7.2/"$port" && many+=("$fd")
done
job_checkpoint
result $? "200 that say nothing do not keep the job from being saved" || explain
for fd in "${many[@]}"; do
	exec {fd}>&-
done
ok "who says nothing is turned away" await -t 60 -p $quiet_one
finish_job
job_result "the job is not disturbed"

# ---- the network is cut ----

# As trecr-ckpt does, to rank 1's supervisor; at STAGE the link goes down instead of an answer.
cat >"$scratch/coordinator.pl" <<'EOF'
use strict;
use Digest::SHA qw(hmac_sha256 hmac_sha256_hex);
use IO::Socket::INET;
my ($file, $stage) = @ARGV;
open my $f, "<", $file or die "$file: $!";
my $text = join "", <$f>;
my ($port) = $text =~ /^port (\d+)$/m;
my ($address) = $text =~ /^address (\d[\d.]+)$/m;
my ($hex) = $text =~ /^secret (\w+)$/m;
my $secret = pack "H*", $hex;
my $s = IO::Socket::INET->new(PeerAddr => $address, PeerPort => $port, Timeout => 60) or die "$!";
my $own = "12" x 32;
syswrite $s, "trecr-job-1 $own\n";
my ($theirs, $proof) = split / /, <$s>;
my $numbers = pack("H*", $own) . pack("H*", $theirs);
sub key { hmac_sha256("$_[0]\0$numbers", $secret) }
die "no proof" unless $proof eq unpack("H*", key("who listens")) . "\n";
syswrite $s, unpack("H*", key("who connects")) . "\n";
my ($out, $in, $sent, $got) = (key("lines to who listens"), key("lines to who connects"), 0, 0);
sub seal { substr hmac_sha256_hex(pack("Q<", $_[1]) . $_[2], $_[0]), 0, 32 }
sub say_line { syswrite $s, seal($out, $sent++, $_[0]) . " $_[0]\n" }
sub hear_line {
	my $line = <$s>;
	defined $line or die "ended before $stage";
	chomp $line;
	my $text = substr $line, 33;
	substr($line, 0, 32) eq seal($in, $got++, $text) or die "forged: $line";
	return $text;
}
if ($stage eq "repeat") {
	my $line = seal($out, 0, "status") . " status\n";
	syswrite $s, $line;
	my $lines = 0;
	while (<$s>) { $lines++ }
	print "$lines\n";
	exit 0;
}
say_line("part=7 checkpoint stop=0 timeout_ms=0");
while ((my $line = hear_line()) !~ /^$stage/) {
	say_line("go");
}
system("ip link set tr1 down") == 0 or die "link";
print "cut\n";
EOF

arena cut
start_job && job_checkpoint
like "$(perl "$scratch/coordinator.pl" ck/ranks/1 repeat 2>&1)" '^[1-9]' "a client that knows the secret is served"
bad=
for stage in frozen written stored; do
	mkdir -p ck/ckpt-000007.tmp
	[ "$(perl "$scratch/coordinator.pl" ck/ranks/1 $stage 2>>cut.err)" = cut ] || bad+=" $stage:coordinator"
	await_round 1 "$(readlink round.1)" || bad+=" $stage:rank-1"
	await_round 0 "$(readlink round.0)" || bad+=" $stage:rank-0"
	ip link set tr1 up
	rm -rf ck/ckpt-000007.tmp
done
is "$bad" "" "the network is cut at any stage: the members go on" || explain cut.err err.*

ip link set tr1 down
job_checkpoint
like "$(tail -n 1 ckpt.err)" 'rank 1: its supervisor [0-9]+ on n2 cannot be reached: .* 10.213.7.2 port [0-9]+' \
	"who cannot be reached is named, with its node"
is "$(cd ck && echo ckpt-*)" ckpt-000001 "and nothing is left of the attempt"
ip link set tr1 up

bad=
for i in 1 2 3 4 5 6; do
	before=$(cd ck && echo ckpt-*)
	trecr-ckpt -t 30 ck >got.ckpt 2>>ckpt.err &
	request=$!
	pause "0.0$((i * 8))"
	ip link set tr1 down
	await_round 0 "$(readlink round.0)" && await_round 1 "$(readlink round.1)" || bad+=" $i:stuck"
	if wait $request; then
		[ -s got.ckpt ] || bad+=" $i:path"
	else
		[ "$(cd ck && echo ckpt-*)" = "$before" ] || bad+=" $i:left"
	fi
	ip link set tr1 up
done
is "$bad" "" "or while it is being taken" || explain err.*
job_checkpoint && kill_all && restart_job 2 && finish_job
job_result "the next checkpoint is good"

# ---- a node disappears ----

# With all that runs on it, at some moment of a checkpoint; its rank is brought back on the other one.
restart_on_one() {
	local rank
	rm -f round.* go
	pids=()
	for rank in 0 1; do
		PMI_RANK=$rank PMI_SIZE=2 trecr-restart --rollback-files ck </dev/null >>"out.$rank" 2>>"err.$rank" &
		pids+=($!)
	done
	for rank in 0 1; do
		await_round $rank '' || return
	done
}

bad=
for i in 1 2 3 4; do
	arena gone
	start_job && job_checkpoint || bad+=" $i:start"
	trecr-ckpt -t 30 ck >got.ckpt 2>>ckpt.err &
	request=$!
	pause "0.0$((i * 15))"
	ip link set tr1 down
	kill -KILL "${pids[1]}" "$(program_of "${pids[1]}")" 2>>kill.err
	wait $request
	rm -f round.0
	await_round 0 '' || bad+=" $i:stuck"
	! job_checkpoint && [ -z "$(find ck -name '*.tmp')" ] || bad+=" $i:left"
	kill_all
	restart_on_one || bad+=" $i:restart"
	ip link set tr1 up
	finish_job || bad+=" $i:end"
done
is "$bad" "" "a node disappears at some moments of a checkpoint: the others go on, and all ranks are brought back on one" ||
	explain err.*
like "$(tail -n 1 ckpt.err)" 'rank 1 of the 2 ranks of the job in .* is not there' "and its rank is named"

# ---- a directory that is not shared ----

arena unshared
mkdir ck
nsenter -t $node -m mount -t tmpfs -o mode=700 own "$PWD/ck"
start_job
job_checkpoint
like "$(cat ckpt.err)" "/ck is not shared by the nodes of the job: of its 2 ranks, only the 1 on .* are in it" \
	"a directory that the nodes do not share is recognised"
is "$(cd ck && echo ckpt-*)" "ckpt-*" "and nothing is left"
finish_job
job_result "the job runs on"
nsenter -t $node -m umount -l "$PWD/ck"

kill $node
wait $node 2>/dev/null
done_testing
