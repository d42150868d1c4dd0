package embedded_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator"
	"github.com/siltstone-io/siltstone/coordinator/coordinatortest"
	"github.com/siltstone-io/siltstone/coordinator/embedded"
	"github.com/siltstone-io/siltstone/coordinator/faulty"
)

// bg is for what runs in a child, and never gives up.
var bg = context.Background()

var update = flag.Bool("update", false, "write the golden file anew")

func open(t testing.TB, path string) *embedded.Coordinator {
	t.Helper()
	c, err := embedded.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func closeIt(t testing.TB, c *embedded.Coordinator) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestSuite(t *testing.T) {
	coordinatortest.Run(t, func(t *testing.T) coordinatortest.Store {
		path := filepath.Join(t.TempDir(), "cluster.db")
		return func(t *testing.T) coordinator.Coordinator { return open(t, path) }
	})
}

func TestSuiteThroughFaulty(t *testing.T) {
	coordinatortest.Run(t, func(t *testing.T) coordinatortest.Store {
		path := filepath.Join(t.TempDir(), "cluster.db")
		return func(t *testing.T) coordinator.Coordinator { return faulty.Wrap(open(t, path), faulty.Transparent) }
	})
}

// In a process of its own, the test binary is what children need to be.
func TestMain(m *testing.M) {
	switch path := os.Getenv("EMBEDDED_CHILD_FILE"); os.Getenv("EMBEDDED_CHILD") {
	case "append":
		appendForEver(path)
	case "disk full":
		fillDisk(path)
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, what, path string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "EMBEDDED_CHILD="+what, "EMBEDDED_CHILD_FILE="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

func entry(seq coordinator.Seq) coordinator.Entry {
	return coordinator.Entry{Seq: seq, Nonce: coordinator.Nonce{byte(seq)}, Data: fmt.Appendf(nil, "entry %d", seq)}
}

// appendForEver prints each seq that was appended, and dies by a signal.
func appendForEver(path string) {
	c, err := embedded.Open(path)
	if err != nil {
		panic(err)
	}
	next, err := after(c, 0)
	for err == nil {
		next++
		if err = c.Append(bg, "a", entry(next)); err == nil {
			fmt.Println(next)
		}
	}
	panic(err)
}

// after reads to the end of ledger a, and is its last seq.
func after(c *embedded.Coordinator, seq coordinator.Seq) (coordinator.Seq, error) {
	for {
		got, err := c.Read(bg, "a", seq, coordinator.MaxReadEntries)
		if err != nil || len(got) == 0 {
			return seq, err
		}
		for _, e := range got {
			seq++
			if want := entry(seq); e.Seq != want.Seq || e.Nonce != want.Nonce || !bytes.Equal(e.Data, want.Data) {
				return seq, fmt.Errorf("slot %d holds %+v", seq, e)
			}
		}
	}
}

func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.db")
	last := coordinator.Seq(0)
	for round := range 5 {
		cmd := child(t, "append", path)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		appended := last
		next := func() bool {
			if !lines.Scan() {
				return false
			}
			n, err := strconv.ParseUint(lines.Text(), 10, 64)
			if err == nil { // the last line may be cut
				appended = max(appended, coordinator.Seq(n))
			}
			return true
		}
		for range 3 + round*5 {
			if !next() {
				t.Fatal("the child came to an end")
			}
		}
		if _, err := embedded.Open(path); !errors.Is(err, coordinator.ErrLocked) {
			t.Errorf("opened beside another process: %v", err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for more := true; more; {
			more = next()
		}
		_ = cmd.Wait()
		c := open(t, path)
		last, err = after(c, 0)
		if err != nil || last < appended || last > appended+1 {
			t.Fatalf("%d were appended, %d are there: %v", appended, last, err)
		}
		closeIt(t, c)
	}
}

func TestLockedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.db")
	c := open(t, path)
	start := time.Now()
	if _, err := embedded.Open(path); !errors.Is(err, coordinator.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("opened twice: %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("refused after %v", took)
	}
	closeIt(t, c)
	closeIt(t, open(t, path))
}

// Who opens a file for reading sees all of it, beside others who read, and
// changes nothing.
func TestForReading(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.db")
	c := open(t, path)
	_, err := c.Put(t.Context(), "r", []byte("value"), "", coordinator.Nonce{9})
	if err := errors.Join(err, c.Append(t.Context(), "a", entry(1)), c.Append(t.Context(), "a", entry(2))); err != nil {
		t.Fatal(err)
	}
	if _, err := embedded.OpenForReading(path); !errors.Is(err, coordinator.ErrLocked) {
		t.Errorf("opened for reading beside a writer: %v", err)
	}
	closeIt(t, c)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r, err := embedded.OpenForReading(path)
		if err != nil {
			t.Fatal(err)
		}
		defer closeIt(t, r)
		if last, err := after(r, 0); err != nil || last != 2 {
			t.Errorf("read to %d, %v", last, err)
		}
		if v, err := r.Get(t.Context(), "r"); err != nil || string(v.Data) != "value" {
			t.Errorf("got %+v, %v", v, err)
		}
		_, putErr := r.Put(t.Context(), "s", nil, "", coordinator.Nonce{})
		for what, err := range map[string]error{
			"append": r.Append(t.Context(), "a", entry(3)), "put": putErr,
			"trim": r.Trim(t.Context(), "a", 1), "delete": r.Delete(t.Context(), "r", "1", coordinator.Nonce{}),
		} {
			if !errors.Is(err, siltstone.ErrUnavailable) || errors.Is(err, coordinator.ErrUnknown) {
				t.Errorf("%s: %v, want a refusal", what, err)
			}
		}
	}
	if _, err := embedded.Open(path); !errors.Is(err, coordinator.ErrLocked) {
		t.Errorf("opened for writing beside readers: %v", err)
	}
	if now, err := os.ReadFile(path); err != nil || !bytes.Equal(now, before) {
		t.Errorf("the file was changed: %v", err)
	}
}

// What Open would make is not made for a reader.
func TestNoneToRead(t *testing.T) {
	folder := t.TempDir()
	fresh := func(path string) error { // as bbolt leaves it before it is ours
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			return err
		}
		return db.Close()
	}
	for name, prepare := range map[string]func(string) error{
		"missing": func(string) error { return nil },
		"empty":   func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"fresh":   fresh,
	} {
		path := filepath.Join(folder, name)
		if err := prepare(path); err != nil {
			t.Fatal(err)
		}
		before, _ := os.ReadFile(path)
		_, err := embedded.OpenForReading(path)
		if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line: there is none", name, err)
		}
		if now, _ := os.ReadFile(path); !bytes.Equal(now, before) {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := os.Stat(filepath.Join(folder, "missing")); err == nil {
		t.Error("a missing file was made")
	}
}

func TestRefused(t *testing.T) {
	bolt := func(change func(*bbolt.Tx) error) func(string) error {
		return func(path string) error {
			db, err := bbolt.Open(path, 0o600, nil)
			if err != nil {
				return err
			}
			return errors.Join(db.Update(change), db.Close())
		}
	}
	format := func(v []byte) func(string) error {
		return bolt(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte("siltstone"))
			return errors.Join(err, b.Put([]byte("format"), v))
		})
	}
	write := func(data []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, data, 0o600) }
	}
	for name, test := range map[string]struct {
		make func(path string) error
		want error
	}{
		"a short text":       {write([]byte("hello")), siltstone.ErrForeign},
		"a long text":        {write(bytes.Repeat([]byte("hello "), 10_000)), siltstone.ErrForeign},
		"zeros":              {write(make([]byte, 64<<10)), siltstone.ErrForeign},
		"another's database": {bolt(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("theirs")); return err }), siltstone.ErrForeign},
		"a newer format":     {format(binary.BigEndian.AppendUint32(nil, 2)), siltstone.ErrNewerFormat},
		"format 0":           {format(make([]byte, 4)), siltstone.ErrCorrupt},
		"no format":          {format(nil), siltstone.ErrCorrupt},
		"a folder":           {func(path string) error { return os.Mkdir(path, 0o700) }, siltstone.ErrForeign},
		"no such folder":     {func(path string) error { return os.Remove(filepath.Dir(path)) }, os.ErrNotExist},
		"a file for folder": {func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, syscall.ENOTDIR},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "cluster.db")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), test.make(path)); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			for how, open := range map[string]func(string) (*embedded.Coordinator, error){
				"for writing": embedded.Open, "for reading": embedded.OpenForReading,
			} {
				_, err := open(path)
				if !errors.Is(err, test.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
					t.Errorf("%s: %v, want %v", how, err, test.want)
				}
			}
			if now, _ := os.ReadFile(path); !bytes.Equal(now, before) {
				t.Error("the file was changed")
			}
		})
	}
}

// Damage is an error, or in what is not read, nothing. It never ends the process.
func TestDamaged(t *testing.T) {
	folder := t.TempDir()
	c := open(t, filepath.Join(folder, "whole"))
	var wg sync.WaitGroup
	for seq := range coordinator.Seq(200) {
		wg.Go(func() {
			if err := c.Append(t.Context(), "a", entry(seq+1)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	closeIt(t, c)
	whole, err := os.ReadFile(filepath.Join(folder, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	used := len(bytes.TrimRight(whole, "\x00"))
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for round := range 60 {
		data := bytes.Clone(whole[:used+4096])
		switch page := 4096 * r.IntN(used/4096); round % 4 {
		case 0:
			data = data[:r.IntN(used)]
		case 1:
			clear(data[page : page+4096])
		case 2:
			data[page+r.IntN(64)] ^= 1 << r.IntN(8)
		default:
			copy(data[page:page+4096], data[4096*r.IntN(used/4096):])
		}
		path := filepath.Join(folder, strconv.Itoa(round))
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := embedded.Open(path)
		if err != nil {
			refused++
			continue
		}
		_, _ = after(c, 0)
		_ = c.Append(t.Context(), "a", entry(201))
		_ = c.Close()
	}
	if refused < 10 {
		t.Errorf("only %d of 60 damaged files were refused", refused)
	}
}

// fillDisk appends until the file may not grow, then lets it grow again. It
// ends with a line that says what was wrong, or "ok".
func fillDisk(path string) {
	c, err := embedded.Open(path)
	if err != nil {
		panic(err)
	}
	limit := syscall.Rlimit{Cur: 1 << 20, Max: ^uint64(0)}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	data := make([]byte, 100<<10)
	seq := coordinator.Seq(0)
	for err == nil && seq < 1000 {
		seq++
		err = c.Append(bg, "a", coordinator.Entry{Seq: seq, Data: data})
	}
	if err == nil || errors.Is(err, coordinator.ErrUnknown) || !errors.Is(err, siltstone.ErrUnavailable) {
		fmt.Println("the full disk:", err)
		return
	}
	message := err
	for range 3 { // it has not landed, and reads go on
		got, err := c.Read(bg, "a", seq-2, 10)
		if err != nil || len(got) != 1 {
			fmt.Println("read:", got, err)
			return
		}
		if err := c.Append(bg, "a", coordinator.Entry{Seq: seq, Data: data}); err == nil || errors.Is(err, coordinator.ErrUnknown) {
			fmt.Println("the full disk, again:", err)
			return
		}
	}
	limit.Cur = limit.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	err = c.Append(bg, "a", coordinator.Entry{Seq: seq, Data: data})
	if err != nil {
		fmt.Println("there is room again:", err)
		return
	}
	if err := c.Close(); err != nil {
		fmt.Println("close:", err)
		return
	}
	fmt.Println("ok", seq, message)
}

func TestDiskFull(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cluster.db")
	out, err := child(t, "disk full", path).Output()
	var last int
	if _, scan := fmt.Sscanf(string(out), "ok %d", &last); scan != nil || err != nil {
		t.Fatalf("%s, %v", out, err)
	}
	t.Logf("%s", out)
	c := open(t, path)
	defer closeIt(t, c)
	got, err := c.Read(t.Context(), "a", coordinator.Seq(last-1), 10)
	if err != nil || len(got) != 1 {
		t.Errorf("after that: %d entries, %v", len(got), err)
	}
}

// A file of each format version stays readable.
func TestGolden(t *testing.T) {
	stored := filepath.Join("testdata", "v1.golden")
	path := filepath.Join(t.TempDir(), "cluster.db")
	if *update {
		makeGolden(t, path, stored)
	}
	data, err := os.ReadFile(stored)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	c := open(t, path)
	defer closeIt(t, c)
	got, err := c.Read(t.Context(), "shard-07", 2, 10)
	if err != nil || len(got) != 1 || got[0].Seq != 3 || string(got[0].Data) != "entry 3" || got[0].Nonce != (coordinator.Nonce{3}) {
		t.Errorf("read %+v, %v", got, err)
	}
	if floor, err := c.Floor(t.Context(), "shard-07"); err != nil || floor != 2 {
		t.Errorf("floor %d, %v", floor, err)
	}
	v, err := c.Get(t.Context(), "cluster")
	if err != nil || string(v.Data) != "value" || v.Version != "1" || v.Nonce != (coordinator.Nonce{9}) {
		t.Errorf("got %+v, %v", v, err)
	}
	if version, err := c.Put(t.Context(), "other", nil, "", coordinator.Nonce{}); err != nil || version != "2" {
		t.Errorf("version %q, %v", version, err)
	}
}

func makeGolden(t *testing.T, path, stored string) {
	c := open(t, path)
	for seq := range coordinator.Seq(3) {
		if err := c.Append(t.Context(), "shard-07", entry(seq+1)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Put(t.Context(), "cluster", []byte("value"), "", coordinator.Nonce{9})
	if err := errors.Join(err, c.Trim(t.Context(), "shard-07", 2), c.Close()); err != nil {
		t.Fatal(err)
	}
	// Without what the file has grown ahead.
	from, err1 := bbolt.Open(path, 0o600, nil)
	to, err2 := bbolt.Open(path+".small", 0o600, &bbolt.Options{NoFreelistSync: true})
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	none := func(*bbolt.Tx) error { return nil }
	err = errors.Join(bbolt.Compact(to, from, 0), to.Update(none), to.Update(none), from.Close(), to.Close())
	data, err3 := os.ReadFile(path + ".small")
	if err := errors.Join(err, err3, os.WriteFile(stored, data, 0o644)); err != nil {
		t.Fatal(err)
	}
}

// Whatever a file holds, it is refused or used; the process goes on.
func FuzzOpen(f *testing.F) {
	whole, err := os.ReadFile(filepath.Join("testdata", "v1.golden"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint16(0), []byte{})
	f.Add(uint16(2*4096+10), []byte{1, 0, 0, 0})     // a page's count and overflow
	f.Add(uint16(3*4096+16), []byte{0, 0, 0, 0, 99}) // its first element
	f.Fuzz(func(t *testing.T, at uint16, patch []byte) {
		data := bytes.Clone(whole)
		copy(data[int(at)%len(data):], patch)
		path := filepath.Join(t.TempDir(), "cluster.db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := embedded.Open(path)
		if err != nil {
			if !errors.Is(err, siltstone.ErrCorrupt) && !errors.Is(err, siltstone.ErrForeign) && !errors.Is(err, siltstone.ErrNewerFormat) {
				t.Fatalf("unclassed error: %v", err)
			}
			return
		}
		_, _ = c.Read(t.Context(), "shard-07", 2, 10)
		_ = c.Append(t.Context(), "shard-07", entry(4))
		_, _ = c.List(t.Context(), "")
		_ = c.Close()
	})
}
