package topic

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/siltstone-io/siltstone"
	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// Why a decision refuses. The errors that decisions return wrap one of these
// and read well to a user.
var (
	ErrInvalidName        = errors.New("invalid topic name")
	ErrExists             = errors.New("topic exists already")
	ErrUnknown            = errors.New("no such topic")
	ErrInvalidPartitions  = errors.New("invalid number of partitions")
	ErrInvalidReplication = errors.New("invalid replication factor")
	ErrInvalidConfig      = errors.New("invalid config") // always in a *ConfigError
	ErrInvalidRequest     = errors.New("invalid request")
	ErrTooMany            = errors.New("too much for one request") // Kafka's POLICY_VIOLATION
)

// ConfigError says which setting was refused, and why. It wraps ErrInvalidConfig.
type ConfigError struct{ Name, Reason string }

func (e *ConfigError) Error() string { return e.Name + ": " + e.Reason }

// Unwrap is ErrInvalidConfig.
func (e *ConfigError) Unwrap() error { return ErrInvalidConfig }

// MaxNewPartitions is how many partitions one request may add, as in Kafka.
const MaxNewPartitions = 10_000

// Decision is what to append: nothing where Body is empty.
type Decision struct {
	Kind byte
	Body []byte
}

// items gathers what a decision says of several topics, as long as it fits an entry.
type items struct {
	count int
	bytes []byte
}

func (l *items) add(item interface{ append(b []byte) []byte }) error {
	longer := item.append(l.bytes)
	if len(longer)+binary.MaxVarintLen32 > ledger.MaxBodyBytes {
		return fmt.Errorf("%w: ask for fewer topics at a time", ErrTooMany)
	}
	l.count, l.bytes = l.count+1, longer
	return nil
}

func (l *items) decision(kind byte) Decision {
	if l.count == 0 {
		return Decision{}
	}
	return Decision{kind, append(binary.AppendUvarint(nil, uint64(l.count)), l.bytes...)}
}

// NewTopic asks for a topic.
type NewTopic struct {
	Name        string
	ID          siltstone.TopicID // random, from the caller; the topic's, if it is created
	Partitions  int32             // -1: the cluster's num.partitions
	Replication int16             // -1 and 1 to 3 mean the cluster's own
	Configs     []Setting         // of one name, the last counts
	CreatedMS   int64
}

// Setting is a config as a request gives it. A nil value is refused.
type Setting struct {
	Name  string
	Value *string
}

// Create decides on new topics, each by itself: errs[i] is why topics[i] is
// refused, or nil where the decision has it.
func Create(v *View, topics []NewTopic) (d Decision, errs []error) {
	errs = make([]error, len(topics))
	asked, made := map[string]int{}, map[string]string{}
	for _, t := range topics {
		asked[t.Name]++
	}
	var list items
	partitions := 0
	for i, t := range topics {
		if asked[t.Name] > 1 {
			errs[i] = fmt.Errorf("%w: topic %s is named twice", ErrInvalidRequest, t.Name)
			continue
		}
		created, err := create(v, t)
		if other, taken := made[nameKey(t.Name)]; err == nil && taken {
			err = collision(t.Name, other)
		}
		if partitions += int(created.Partitions); err == nil && partitions > MaxNewPartitions {
			err = fmt.Errorf("%w: more than %d new partitions", ErrTooMany, MaxNewPartitions)
		}
		if err == nil {
			err = list.add(created)
		}
		if err != nil {
			partitions -= int(created.Partitions)
			errs[i] = err
			continue
		}
		made[nameKey(t.Name)] = t.Name
	}
	return list.decision(KindCreate), errs
}

func collision(name, other string) error {
	return fmt.Errorf("%w: %s differs from the topic %s only by '.' and '_'", ErrInvalidName, name, other)
}

func create(v *View, t NewTopic) (Created, error) {
	if err := CheckName(t.Name); err != nil {
		return Created{}, err
	}
	if err := checkFree(t.Name); err != nil {
		return Created{}, err
	}
	if other := v.named(t.Name); other != nil && other.Name == t.Name {
		return Created{}, fmt.Errorf("%w: %s", ErrExists, t.Name)
	} else if other != nil {
		return Created{}, collision(t.Name, other.Name)
	}
	if _, taken := v.TopicByID(t.ID); taken || t.ID == (siltstone.TopicID{}) {
		return Created{}, fmt.Errorf("%w: topic id %s is taken", ErrInvalidRequest, t.ID)
	}
	if t.Partitions == -1 {
		t.Partitions = v.cluster.NumPartitions
	}
	if t.Partitions < 1 {
		return Created{}, fmt.Errorf("%w: %d; it is at least 1, or -1 for the cluster's default", ErrInvalidPartitions, t.Partitions)
	}
	if t.Replication != -1 && (t.Replication < 1 || t.Replication > 3) {
		return Created{}, fmt.Errorf("%w: %d; -1 and 1 to 3 are taken, and mean the cluster's own", ErrInvalidReplication, t.Replication)
	}
	configs := map[string]string{}
	for _, s := range t.Configs {
		if s.Value == nil {
			return Created{}, &ConfigError{s.Name, "a null value"}
		}
		value, err := topicSettings.parse(s.Name, *s.Value)
		if err != nil {
			return Created{}, err
		}
		configs[s.Name] = value
	}
	if err := checkTopic(configs, v.settings); err != nil {
		return Created{}, err
	}
	return Created{t.ID, t.Name, t.Partitions, t.CreatedMS, configs}, nil
}

// Delete decides on topics to delete, each by itself.
func Delete(v *View, ids []siltstone.TopicID) (d Decision, errs []error) {
	errs = make([]error, len(ids))
	var list items
	seen := map[siltstone.TopicID]bool{}
	for i, id := range ids {
		if _, ok := v.TopicByID(id); !ok {
			errs[i] = fmt.Errorf("%w: %s", ErrUnknown, id)
		} else if seen[id] {
			errs[i] = fmt.Errorf("%w: topic %s is named twice", ErrInvalidRequest, id)
		} else if errs[i] = list.add(deleted(id)); errs[i] == nil {
			seen[id] = true
		}
	}
	return list.decision(KindDelete), errs
}

// deleted is a topic id as an entry has it.
type deleted siltstone.TopicID

func (d deleted) append(b []byte) []byte { return append(b, d[:]...) }

// NewPartitions asks for a topic to have Total partitions.
type NewPartitions struct {
	Topic string
	Total int32
}

// AddPartitions decides on more partitions, each topic by itself.
func AddPartitions(v *View, topics []NewPartitions) (d Decision, errs []error) {
	errs = make([]error, len(topics))
	var list items
	seen := map[string]bool{}
	added := 0
	for i, n := range topics {
		t, ok := v.Topic(n.Topic)
		switch {
		case !ok:
			errs[i] = fmt.Errorf("%w: %s", ErrUnknown, n.Topic)
		case seen[n.Topic]:
			errs[i] = fmt.Errorf("%w: topic %s is named twice", ErrInvalidRequest, n.Topic)
		case n.Total <= t.Partitions:
			errs[i] = fmt.Errorf("%w: %s has %d, and %d are no more", ErrInvalidPartitions, n.Topic, t.Partitions, n.Total)
		case int(n.Total-t.Partitions) > MaxNewPartitions-added:
			errs[i] = fmt.Errorf("%w: more than %d new partitions", ErrTooMany, MaxNewPartitions)
		default:
			errs[i] = list.add(Grown{t.ID, n.Total})
		}
		if errs[i] == nil {
			seen[n.Topic], added = true, added+int(n.Total-t.Partitions)
		}
	}
	return list.decision(KindAddPartitions), errs
}
