package topic

import (
	"errors"

	"github.com/siltstone-io/siltstone"
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

// Decision is what to append: nothing when Body is empty.
type Decision struct {
	Kind byte
	Body []byte
}

// NewTopic asks for a topic.
type NewTopic struct {
	Name        string
	ID          siltstone.TopicID // random, from the caller; used if the topic is created
	Partitions  int32             // -1: the cluster's num.partitions
	Replication int16             // -1 and 1 to 3 mean the cluster's own
	Configs     []Setting
	CreatedMS   int64
}

// Setting is a config as a request gives it. A nil value is refused.
type Setting struct {
	Name  string
	Value *string
}

// Create decides on new topics, each by itself: errs[i] is why topics[i] is
// refused, or nil where it is in the decision.
func Create(v *View, topics []NewTopic) (d Decision, errs []error) { panic("todo") }

// Delete decides on topics to delete, each by itself.
func Delete(v *View, ids []siltstone.TopicID) (d Decision, errs []error) { panic("todo") }

// NewPartitions asks for a topic to have Total partitions.
type NewPartitions struct {
	Topic string
	Total int32
}

// AddPartitions decides on more partitions, each topic by itself.
func AddPartitions(v *View, topics []NewPartitions) (d Decision, errs []error) { panic("todo") }

// Op is what an alteration does with a setting (KIP-339); the numbers are the protocol's.
type Op int8

// Operations.
const (
	Set      Op = 0
	Unset    Op = 1 // Kafka's DELETE: back to the default
	Append   Op = 2 // to a list
	Subtract Op = 3 // from a list
)

// ConfigOp alters one setting.
type ConfigOp struct {
	Name  string
	Op    Op
	Value *string
}

// Alteration alters settings of one topic, all or none.
type Alteration struct {
	Topic string
	Ops   []ConfigOp
}

// AlterConfigs decides on settings of topics, each topic by itself.
func AlterConfigs(v *View, topics []Alteration) (d Decision, errs []error) { panic("todo") }

// AlterCluster decides on settings of the cluster, all or none.
func AlterCluster(v *View, ops []ConfigOp) (Decision, error) { panic("todo") }
