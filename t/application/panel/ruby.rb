# Packages: ruby. Needs: ruby
$stdout.sync = true
seen = Hash.new(0)
state = 1
work = lambda do |n|
  n.times do
    state = (state * 69069 + 1) % 1048576
    seen["w#{state % 997}"] += state % 1000
  end
end
work.(100000)
questions, answers = Queue.new, Queue.new
Thread.new { loop { answers << questions.pop**2 } }
fiber = Fiber.new { 1000.times { |k| Fiber.yield k } }
10.times { fiber.resume }
puts 'ready'
until File.exist?('go')
  questions << 7
  answers.pop
  sleep 0.002
end
work.(100000)
puts "#{state} #{seen.size} #{seen.values.sum} #{fiber.resume}"
