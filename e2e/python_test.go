package e2e

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const pythonFolder = "../bin/python" // scripts/install fills it

// python runs tests in testdata/python against the server.
func (s *server) python(t *testing.T, script string, tests ...string) {
	t.Helper()
	out, err := s.tryPython(t, script, tests...)
	if err != nil && strings.Contains(out, lostAssignment) {
		// kafka-python's leader loses its assignment where a poll ends between
		// its SyncGroup and the answer (see SETTLED_MS in clients.py).
		t.Logf("once more, on another server: %s %q: %v\n%s", script, tests, err, out)
		out, err = start(t, t.TempDir()).tryPython(t, script, tests...)
	}
	if err != nil {
		t.Errorf("%s %q: %v (scripts/install python?)\n%s", script, tests, err, out)
	}
}

// lostAssignment is what clients.py says of a group that does not come to rest.
const lostAssignment = " partitions over "

func (s *server) tryPython(t *testing.T, script string, tests ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, pythonFolder+"/bin/python", append([]string{"testdata/python/" + script, s.kafka}, tests...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestPythonClients: kafka-python, confluent-kafka and aiokafka. Some tests are of
// field reports, which say so.
func TestPythonClients(t *testing.T) {
	s := start(t, t.TempDir())
	for _, suite := range []struct {
		script string
		tests  []string
	}{
		{"clients.py", []string{
			"idempotent", "acks", "codecs", "nulls", "times", "refused", "commits", "positions", "eager", "cooperative", "statics", "late",
		}},
		{"admin.py", []string{"topics", "configs", "records", "cluster", "groups"}},
		{"others.py", []string{"times", "appended", "admin", "groups", "aiokafka"}},
	} {
		t.Run(suite.script, func(t *testing.T) {
			for _, name := range suite.tests {
				t.Run(name, func(t *testing.T) { s.python(t, suite.script, name) })
			}
		})
	}
}
