// Threads that make garbage and sum what they keep, under whichever collector is chosen: prints
// ready, goes on until the file "go" is there, and prints the sum of rounds fixed beforehand.
import java.io.File;
import java.util.ArrayList;
import java.util.concurrent.*;

class Collect {
	static final int THREADS = 4, ROUNDS = 400;

	static long round(long seed) {
		ArrayList<long[]> kept = new ArrayList<>();
		long x = seed, sum = 0;
		for (int i = 0; i < 2000; i++) {
			x = x * 6364136223846793005L + 1442695040888963407L;
			long[] a = new long[16 + (int) (x >>> 60)];
			a[3] = x;
			if (i % 7 == 0)
				kept.add(a);
		}
		for (long[] a : kept)
			sum += a[3] ^ a.length;
		return sum;
	}

	static long work(int id, CountDownLatch started) throws Exception {
		long sum = 0;
		File go = new File("go");
		for (int i = 0; i < ROUNDS; i++)
			sum += round(id * 1000 + i);
		started.countDown();
		while (!go.exists())
			round(id); // garbage while checkpoints are made
		for (int i = 0; i < ROUNDS; i++)
			sum ^= round(id * 1000 + i) * 31;
		return sum;
	}

	public static void main(String[] args) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(THREADS);
		CountDownLatch started = new CountDownLatch(THREADS);
		ArrayList<Future<Long>> results = new ArrayList<>();
		for (int i = 0; i < THREADS; i++) {
			int id = i;
			results.add(pool.submit(() -> work(id, started)));
		}
		started.await();
		System.out.println("ready");
		long sum = 0;
		for (Future<Long> r : results)
			sum = sum * 31 + r.get();
		pool.shutdown();
		System.out.println(sum);
	}
}
