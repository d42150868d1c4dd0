package e2e

import (
	"context"
	"os"
	"os/exec"
	"testing"
)

const pythonFolder = "../bin/python" // scripts/install fills it

// python runs tests in testdata/python against the server.
func (s *server) python(t *testing.T, script string, tests ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, pythonFolder+"/bin/python", append([]string{"testdata/python/" + script, s.kafka}, tests...)...)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s %q: %v (scripts/install python?)\n%s", script, tests, err, out)
	}
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
			"idempotent", "acks", "codecs", "nulls", "times", "refused", "transactional", "commits", "positions", "eager", "cooperative", "statics", "late",
		}},
		{"admin.py", []string{"topics", "configs", "records", "cluster", "groups"}},
		{"others.py", []string{"times", "appended", "transactional", "admin", "groups", "aiokafka"}},
	} {
		t.Run(suite.script, func(t *testing.T) {
			for _, name := range suite.tests {
				t.Run(name, func(t *testing.T) {
					if *apache && name == "transactional" {
						t.Skip("Kafka has transactions")
					}
					s.python(t, suite.script, name)
				})
			}
		})
	}
}
