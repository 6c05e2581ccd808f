// Packages: mono-mcs mono-runtime. Needs: mcs mono
using System;
using System.Collections.Generic;
using System.IO;
using System.Threading.Tasks;

class Words {
	static long Work(int id, int n) {
		var seen = new Dictionary<long, long>();
		long s = id;
		for (int k = 0; k < n; k++) {
			s = (s * 69069 + 1) % 1048576;
			long was;
			seen.TryGetValue(s % 997, out was);
			seen[s % 997] = was + s % 1000;
		}
		long sum = s;
		foreach (var pair in seen)
			sum = sum * 31 + pair.Key * pair.Value;
		return sum;
	}

	static void Main() {
		long first = Work(1, 200000);
		var task = Task.Run(() => {
			long rounds = 0;
			while (!File.Exists("go"))
				rounds += Work(2, 1000) & 1;
			return Work(3, 100000);
		});
		Console.WriteLine("ready");
		Console.WriteLine("{0} {1}", first, task.Result);
	}
}
