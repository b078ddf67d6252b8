%% Five thousand processes: each makes binaries and terms, sends them to the next, and ends; some start programs.
-module(heavy).
-export([start/0]).

start() ->
    Sums = [round_of(Number) || Number <- lists:seq(1, 5)],
    io:format("sum ~p~n", [lists:sum(Sums)]),
    halt(0).

round_of(Number) ->
    Parent = self(),
    Processes = [spawn(fun() -> worker(Parent, I, Number) end) || I <- lists:seq(1, 5000)],
    lists:foreach(fun({From, To}) -> From ! {next, To} end,
                  lists:zip(Processes, tl(Processes) ++ [hd(Processes)])),
    ["\n" = os:cmd("echo") || _ <- lists:seq(1, 10)],
    lists:sum([receive {sum, Sum} -> Sum end || _ <- Processes]).

worker(Parent, I, Number) ->
    Next = receive {next, Pid} -> Pid end,
    lists:foreach(fun(J) -> Next ! {data, binary:copy(<<(I rem 256)>>, 50 * J + I rem 700)} end, lists:seq(1, 20)),
    Map = maps:from_list([{{I, K}, integer_to_list(K * Number)} || K <- lists:seq(1, 100)]),
    Got = lists:sum([receive {data, Data} -> check(Data) end || _ <- lists:seq(1, 20)]),
    Parent ! {sum, Got + maps:size(Map)}.

check(Data) ->
    First = binary:first(Data),
    Data = binary:copy(<<First>>, byte_size(Data)),
    byte_size(Data).
