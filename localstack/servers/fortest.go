package servers

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// ForTest runs a server (MinIO, AWS) of its own for a test, with data of its own,
// on a free port, and returns its address.
func ForTest(t testing.TB, server func(dir, addr string) Server) (addr string) {
	t.Helper()
	dir, addr := t.TempDir(), FreeAddr(t)
	s := server(dir, addr)
	MustBeInstalled(t, s)
	p, err := s.Start(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the end of what %s printed:\n%s", s.Name, s.lastLines(dir))
		}
	})
	return addr
}

// MustBeInstalled skips a test where the server's program is missing, but never in CI.
func MustBeInstalled(t testing.TB, s Server) {
	t.Helper()
	switch _, err := os.Stat(s.Argv[0]); {
	case err == nil:
	case os.Getenv("CI") != "":
		t.Fatalf("scripts/install %s was not run: %v", s.Name, err)
	default:
		t.Skipf("NOT TESTED: %s is not installed; scripts/install %s does it", s.Name, s.Name)
	}
}

// FreeAddr is an address that nobody listens at. It is not one of 127.0.0.1,
// where the next connection of any client may take the port before it is used.
func FreeAddr(t testing.TB) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// installed is the path of what scripts/install has put into bin, from any
// folder of the repository.
func installed(name string) string {
	dir, err := os.Getwd()
	for err == nil && filepath.Dir(dir) != dir {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return filepath.Join(dir, "bin", name)
}
