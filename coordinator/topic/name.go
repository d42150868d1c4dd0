package topic

import (
	"fmt"
	"strings"
)

const maxNameBytes = 249

// CheckName holds a topic's name against Kafka's rules.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrInvalidName)
	case name == "." || name == "..":
		return fmt.Errorf("%w: %q is taken", ErrInvalidName, name)
	case len(name) > maxNameBytes:
		return fmt.Errorf("%w: it has %d characters, at most %d are allowed", ErrInvalidName, len(name), maxNameBytes)
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-':
		default:
			return fmt.Errorf("%w: %q has other characters than letters and digits of ASCII, '.', '_' and '-'", ErrInvalidName, name)
		}
	}
	return nil
}

// reserved are the names of Kafka's internal topics, as nameKeys.
var reserved = map[string]bool{
	"__consumer_offsets": true, "__transaction_state": true, "__share_group_state": true,
	"__cluster_metadata": true, "__remote_log_metadata": true,
}

// checkFree refuses names of Kafka's internal topics. There are none here:
// clients and tools that know such a name would take a topic that has it for
// what it is not.
func checkFree(name string) error {
	if reserved[nameKey(name)] {
		return fmt.Errorf("%w: %s is reserved: Kafka has an internal topic of this name, and here there are none", ErrInvalidName, name)
	}
	return nil
}

// nameKey is the same for names that differ only by '.' and '_', which metrics
// cannot tell apart: one of them excludes the others, as in Kafka.
func nameKey(name string) string { return strings.ReplaceAll(name, ".", "_") }
