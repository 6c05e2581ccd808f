%% Packages: erlang-nox. Needs: escript
%% Processes that send messages around, a table, a TCP connection to itself, timers.
-mode(compile).

node_of_ring(Next) ->
    receive
        {Left, Sum, Home} when Left =:= 0 -> Home ! {sum, Sum}, node_of_ring(Next);
        {Left, Sum, Home} -> Next ! {Left - 1, (Sum * 31 + Left) rem 1000003, Home}, node_of_ring(Next);
        {next, Pid} -> node_of_ring(Pid)
    end.

ring(First, Rounds) ->
    First ! {Rounds, 1, self()},
    receive {sum, S} -> S end.

echo(Listening) ->
    {ok, S} = gen_tcp:accept(Listening),
    echo_on(S).
echo_on(S) ->
    case gen_tcp:recv(S, 4) of
        {ok, Data} -> ok = gen_tcp:send(S, Data), echo_on(S);
        _ -> ok
    end.

talk(_, 0, Sum) -> Sum;
talk(S, N, Sum) ->
    ok = gen_tcp:send(S, <<N:32>>),
    {ok, <<M:32>>} = gen_tcp:recv(S, 4),
    talk(S, N - 1, (Sum * 7 + M) rem 1000003).

wait(First, S) ->
    case filelib:is_file("go") of
        true -> ok;
        false -> ring(First, 100), talk(S, 10, 1), timer:sleep(2), wait(First, S)
    end.

main(_) ->
    Last = spawn(fun() -> node_of_ring(none) end),
    First = lists:foldl(fun(_, Next) -> spawn(fun() -> node_of_ring(Next) end) end, Last, lists:seq(1, 500)),
    Last ! {next, First},
    T = ets:new(table, [set]),
    [ets:insert(T, {K, K * K}) || K <- lists:seq(1, 10000)],
    {ok, L} = gen_tcp:listen(0, [binary, {active, false}, {ip, {127, 0, 0, 1}}]),
    {ok, Port} = inet:port(L),
    spawn(fun() -> echo(L) end),
    {ok, S} = gen_tcp:connect({127, 0, 0, 1}, Port, [binary, {active, false}]),
    A = ring(First, 50000),
    io:format("ready~n"),
    wait(First, S),
    B = ring(First, 50000),
    Sum = ets:foldl(fun({_, V}, Acc) -> Acc + V end, 0, T),
    io:format("~p ~p ~p ~p~n", [A, B, Sum, talk(S, 500, 1)]).
