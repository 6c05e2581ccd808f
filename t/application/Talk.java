// A server and its clients in Java: some connections are served by threads that block, others by
// a selector (epoll); the clients block with time-outs.
//
//	Talk server		prints the port it listens at; ends when its input does
//	Talk client PORT	prints ready, and what it got when the file "go" is there
import java.io.*;
import java.net.*;
import java.nio.*;
import java.nio.channels.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.zip.CRC32;

class Talk {
	static final int CLIENTS = 8, KEPT = 60, SIZE = 3000;

	static long hash(byte[] data) {
		CRC32 crc = new CRC32();
		crc.update(data);
		return crc.getValue();
	}

	// ---- server: the first byte on a connection says who is to serve it ----

	static void block(SocketChannel channel) {
		try (channel) {
			DataInputStream in = new DataInputStream(channel.socket().getInputStream());
			DataOutputStream out = new DataOutputStream(channel.socket().getOutputStream());
			byte[] data = new byte[SIZE];
			for (;;) {
				in.readFully(data);
				out.writeLong(hash(data));
			}
		} catch (EOFException e) {
			return;
		} catch (IOException e) {
			System.err.println(e);
			System.exit(1);
		}
	}

	static void select(Selector selector, BlockingQueue<SocketChannel> arrivals) throws IOException {
		for (;;) {
			selector.select(1000);
			for (SocketChannel c; (c = arrivals.poll()) != null;) {
				c.configureBlocking(false);
				c.register(selector, SelectionKey.OP_READ, ByteBuffer.allocate(SIZE));
			}
			for (SelectionKey key : selector.selectedKeys()) {
				SocketChannel c = (SocketChannel) key.channel();
				ByteBuffer data = (ByteBuffer) key.attachment();
				if (c.read(data) < 0) {
					c.close();
				} else if (!data.hasRemaining()) {
					ByteBuffer answer = ByteBuffer.allocate(8).putLong(hash(data.array())).flip();
					while (answer.hasRemaining())
						c.write(answer);
					data.clear();
				}
			}
			selector.selectedKeys().clear();
		}
	}

	static void listen(ServerSocketChannel listener) throws Exception {
		Selector selector = Selector.open();
		BlockingQueue<SocketChannel> arrivals = new LinkedBlockingQueue<>();
		background(() -> { select(selector, arrivals); return null; });
		for (;;) {
			SocketChannel c = listener.accept();
			ByteBuffer kind = ByteBuffer.allocate(1);
			c.read(kind);
			if (kind.get(0) == 0) {
				background(() -> { block(c); return null; });
			} else {
				arrivals.put(c);
				selector.wakeup();
			}
		}
	}

	static void background(Callable<Void> what) {
		Thread t = new Thread(() -> {
			try {
				what.call();
			} catch (Exception e) {
				e.printStackTrace();
				System.exit(1);
			}
		});
		t.setDaemon(true);
		t.start();
	}

	// ---- client ----

	static long talk(int port, int id, CountDownLatch started) throws Exception {
		long sum = 0;
		File go = new File("go");
		byte[] data = new byte[SIZE];
		try (Socket s = new Socket("127.0.0.1", port)) {
			s.setSoTimeout(60000);
			DataInputStream in = new DataInputStream(s.getInputStream());
			OutputStream out = s.getOutputStream();
			out.write(id % 2);
			for (int round = 0; round < KEPT || !go.exists(); round++) {
				new Random(id * 1000 + round % KEPT).nextBytes(data);
				out.write(data, 0, SIZE / 2);
				out.write(data, SIZE / 2, SIZE - SIZE / 2);
				long answer = in.readLong();
				if (answer != hash(data))
					throw new Exception("differs: client " + id + " round " + round);
				if (round < KEPT)
					sum = sum * 31 + answer;
				if (round == 20)
					started.countDown();
			}
		}
		return sum;
	}

	static void client(int port) throws Exception {
		ExecutorService pool = Executors.newFixedThreadPool(CLIENTS);
		CountDownLatch started = new CountDownLatch(CLIENTS);
		List<Future<Long>> sums = new ArrayList<>();
		for (int i = 0; i < CLIENTS; i++) {
			int id = i;
			sums.add(pool.submit(() -> talk(port, id, started)));
		}
		started.await();
		System.out.println("ready");
		long sum = 0;
		for (Future<Long> s : sums)
			sum += s.get();
		pool.shutdown();
		System.out.println(sum);
	}

	public static void main(String[] args) throws Exception {
		if (args[0].equals("client")) {
			client(Integer.parseInt(args[1]));
			return;
		}
		ServerSocketChannel listener = ServerSocketChannel.open();
		listener.bind(new InetSocketAddress("127.0.0.1", 0));
		background(() -> { listen(listener); return null; });
		System.out.println(listener.socket().getLocalPort());
		while (System.in.read() >= 0)
			;
	}
}
