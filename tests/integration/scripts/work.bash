# Arrays, strings, functions, subshells and pipes.
declare -A count
for i in $(seq 1 3000); do
  word="w$((i * 7919 % 257))"
  count[$word]=$((${count[$word]:-0} + i))
  text+="${word:1},"
done
for word in "${!count[@]}"; do echo "$word ${count[$word]}"; done | sort | md5sum
fib() { (($1 < 2)) && echo "$1" || echo $(($(fib $(($1 - 1))) + $(fib $(($1 - 2))))); }
fib 9
echo "${#text} ${text//1/one}" | md5sum
printf '%s\n' "${text:0:60}" | tr ',' '\n' | sort -n | uniq -c | head -5
