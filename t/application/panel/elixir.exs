# Packages: elixir. Needs: elixir
# Processes of Erlang's machine: agents, tasks, timers that are under way.
{:ok, agent} = Agent.start_link(fn -> %{} end)
for k <- 1..5000, do: Agent.update(agent, &Map.put(&1, k, k * k))
me = self()
ticker = spawn(fn ->
  tick = fn tick, n ->
    receive do
      :stop -> send(me, {:ticked, n >= 0})
    after 5 -> tick.(tick, n + 1)
    end
  end
  tick.(tick, 0)
end)
Process.send_after(me, :late, 500)
IO.puts("ready")
wait = fn wait ->
  unless File.exists?("go") do
    1..20 |> Task.async_stream(fn k -> Enum.reduce(1..200, k, &rem(&1 * &2 + 1, 65537)) end) |> Enum.to_list()
    wait.(wait)
  end
end
wait.(wait)
send(ticker, :stop)
receive do {:ticked, more} -> IO.inspect(more) end
receive do :late -> IO.puts("the timer came") after 60000 -> IO.puts("no timer") end
IO.inspect(1..400 |> Task.async_stream(fn k -> Enum.reduce(1..2000, k, &rem(&1 * &2 + 7, 1048573)) end)
  |> Enum.reduce(0, fn {:ok, v}, s -> s + v end))
IO.inspect(Agent.get(agent, &Enum.sum(Map.values(&1))))
