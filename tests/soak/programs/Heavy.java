import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;
import java.util.zip.Deflater;
import java.util.zip.Inflater;

/** Direct buffers, zlib and processes from eight threads; prints one sum of all that was seen. */
public class Heavy {
  static long compress(byte[] data) throws Exception {
    Deflater deflater = new Deflater();
    deflater.setInput(data);
    deflater.finish();
    byte[] packed = new byte[data.length + 100];
    int length = deflater.deflate(packed);
    deflater.end();
    Inflater inflater = new Inflater();
    inflater.setInput(packed, 0, length);
    byte[] back = new byte[data.length];
    int got = inflater.inflate(back);
    inflater.end();
    if (got != data.length || !java.util.Arrays.equals(back, data)) throw new IllegalStateException("not what was packed");
    return length;
  }

  static long work(int thread) throws Exception {
    Random random = new Random(thread);
    List<ByteBuffer> kept = new ArrayList<>();
    long sum = 0;
    for (int i = 0; i < 3000; ++i) {
      ByteBuffer buffer = ByteBuffer.allocateDirect(1 + random.nextInt(20000));
      buffer.put(buffer.capacity() - 1, (byte) i);
      kept.add(buffer);
      if (kept.size() > 200) {
        ByteBuffer old = kept.set(random.nextInt(200), kept.remove(kept.size() - 1));
        sum += old.get(old.capacity() - 1) & 0xff;
      }
      if (i % 30 == 0) {
        byte[] data = new byte[30000];
        for (int b = 0; b < data.length; ++b) data[b] = (byte) (random.nextInt(8));
        sum += compress(data);
      }
      if (i % 500 == 0) sum += new ProcessBuilder("true").start().waitFor();
    }
    return sum;
  }

  public static void main(String[] arguments) throws Exception {
    AtomicLong sum = new AtomicLong();
    for (int round = 0; round < 3; ++round) {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 8; ++i) {
        int number = i;
        Thread thread = new Thread(() -> {
          try {
            sum.addAndGet(work(number));
          } catch (Exception error) {
            error.printStackTrace();
            System.exit(1);
          }
        });
        threads.add(thread);
        thread.start();
      }
      for (Thread thread : threads) thread.join();
    }
    System.out.println("sum " + sum.get());
  }
}
