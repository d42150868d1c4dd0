package e2e

import "testing"

// javaClients are the tests in testdata/java, by class.
var javaClients = []struct {
	class string
	tests []string
}{
	{"Producers", []string{"idempotent", "idle", "acks", "codecs", "nulls", "times", "refused", "transactional"}},
	{"Consumers", []string{"commits", "automatic", "positions", "times", "resets", "pattern", "late"}},
	{"Members", []string{"eager", "roundrobin", "sticky", "cooperative", "upgrade", "statics", "fenced", "enforced"}},
	{"Admins", []string{"topics", "configs", "broker-configs", "records", "cluster"}},
	{"GroupAdmins", []string{"describe", "offsets", "delete", "remove"}},
}

// TestJavaClients: the Java clients of Apache Kafka, with their defaults where
// a test is not about a setting.
func TestJavaClients(t *testing.T) {
	s := start(t, t.TempDir())
	for _, suite := range javaClients {
		t.Run(suite.class, func(t *testing.T) {
			for _, name := range suite.tests {
				t.Run(name, func(t *testing.T) {
					if *apache && name == "transactional" {
						t.Skip("Kafka has transactions")
					}
					s.java(t, "", suite.class, s.kafka, name)
				})
			}
		})
	}
}
