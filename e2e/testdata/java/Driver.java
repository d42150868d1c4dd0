import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs main methods, as the command line would, in one virtual machine: starting
 * one for each of a hundred commands would take minutes. Each command comes on
 * a connection of its own, several at once if need be, and has its own standard
 * streams, exit code, and static fields (its jar is loaded anew).
 *
 * Arguments: the port to call back once ready, then the jar of the commands. A
 * request is a count, class and arguments, and standard input; the answer is
 * exit code, standard output and standard error. Counts and lengths take four
 * bytes; texts and streams are a length and bytes.
 */
public class Driver {
    /** One command's streams; the threads that it starts have them too. */
    private static final class Command {
        InputStream in = InputStream.nullInputStream();
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
        final List<Runnable> hooks = new ArrayList<>();
        Integer exited;
    }

    /** Ends a main method that exits. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1;
        Exited() { super(null, null, false, false); }
    }

    private static final InheritableThreadLocal<Command> current = new InheritableThreadLocal<>() {
        @Override protected Command initialValue() { return new Command(); }
    };

    public static void main(String[] args) throws Exception {
        System.setIn(new InputStream() {
            @Override public int read() throws IOException { return current.get().in.read(); }
            @Override public int read(byte[] b, int off, int len) throws IOException { return current.get().in.read(b, off, len); }
        });
        System.setOut(to(false));
        System.setErr(to(true));
        Exit.Procedure exit = (code, message) -> {
            Command c = current.get();
            if (c.exited == null) c.exited = code;
            throw new Exited();
        };
        Exit.setExitProcedure(exit);
        Exit.setHaltProcedure(exit);
        Exit.setShutdownHookAdder((name, hook) -> current.get().hooks.add(hook));

        int port = Integer.parseInt(args[0]);
        URL[] jar = {Path.of(args[1]).toUri().toURL()};
        for (;;) {
            Socket s = new Socket(InetAddress.getLoopbackAddress(), port);
            DataInputStream in = new DataInputStream(s.getInputStream());
            int count = in.readInt(); // waits for the next command
            new Thread(() -> {
                try (s) {
                    String[] words = new String[count];
                    for (int i = 0; i < count; i++) words[i] = new String(bytes(in));
                    Command c = new Command();
                    current.set(c);
                    c.in = new ByteArrayInputStream(bytes(in));
                    int code = run(jar, words);
                    System.out.flush();
                    DataOutputStream out = new DataOutputStream(s.getOutputStream());
                    out.writeInt(code);
                    for (ByteArrayOutputStream stream : new ByteArrayOutputStream[] {c.out, c.err}) {
                        byte[] all = stream.toByteArray();
                        out.writeInt(all.length);
                        out.write(all);
                    }
                } catch (IOException e) {
                    // Whoever asked is gone.
                }
            }).start();
        }
    }

    private static byte[] bytes(DataInputStream in) throws IOException { return in.readNBytes(in.readInt()); }

    private static int run(URL[] jar, String[] words) {
        Command c = current.get();
        String[] args = Arrays.copyOfRange(words, 1, words.length);
        try (URLClassLoader loader = new URLClassLoader(jar)) {
            Thread.currentThread().setContextClassLoader(loader);
            try {
                loader.loadClass(words[0]).getMethod("main", String[].class).invoke(null, (Object) args);
            } catch (InvocationTargetException e) {
                if (!(e.getCause() instanceof Exited)) {
                    e.getCause().printStackTrace();
                    c.exited = 1;
                }
            }
            c.hooks.forEach(Runnable::run); // some tools send their last there
        } catch (Exception e) {
            e.printStackTrace();
            return 1;
        }
        return c.exited == null ? 0 : c.exited;
    }

    private static PrintStream to(boolean err) {
        return new PrintStream(new OutputStream() {
            private ByteArrayOutputStream stream() { return err ? current.get().err : current.get().out; }
            @Override public void write(int b) { stream().write(b); }
            @Override public void write(byte[] b, int off, int len) { stream().write(b, off, len); }
        }, true);
    }
}
