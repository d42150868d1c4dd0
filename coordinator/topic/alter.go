package topic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/siltstone-io/siltstone/coordinator/ledger"
)

// Op is what an alteration does with a setting (KIP-339); the numbers are the protocol's.
type Op int8

// Operations.
const (
	Set      Op = 0
	Unset    Op = 1 // Kafka's DELETE: back to the default
	Append   Op = 2 // to a list
	Subtract Op = 3 // from a list
)

// ConfigOp alters one setting. Unset needs no value.
type ConfigOp struct {
	Name  string
	Op    Op
	Value *string
}

// Alteration alters settings of one topic, all or none.
type Alteration struct {
	Topic string
	Ops   []ConfigOp
	// Replace: the settings that no operation names go back to their defaults.
	Replace bool
}

// AlterConfigs decides on settings of topics, each topic by itself. What
// changes nothing is right, and not in the decision.
func AlterConfigs(v *View, topics []Alteration) (d Decision, errs []error) {
	errs = make([]error, len(topics))
	asked := map[string]int{}
	for _, a := range topics {
		asked[a.Topic]++
	}
	var list items
	for i, a := range topics {
		t, ok := v.Topic(a.Topic)
		if !ok {
			errs[i] = fmt.Errorf("%w: %s", ErrUnknown, a.Topic)
			continue
		}
		if asked[a.Topic] > 1 {
			errs[i] = fmt.Errorf("%w: topic %s is named twice", ErrInvalidRequest, a.Topic)
			continue
		}
		own := t.Configs
		if a.Replace {
			own = nil
		}
		configs, err := ofTopic(own, v.settings).alter(a.Ops)
		if err == nil {
			err = checkTopic(configs, v.settings)
		}
		if err == nil && !maps.Equal(configs, t.Configs) {
			err = list.add(Configured{t.ID, configs})
		}
		errs[i] = err
	}
	return list.decision(KindSetConfigs), errs
}

// AlterCluster decides on settings of the cluster, all or none.
func AlterCluster(v *View, ops []ConfigOp) (Decision, error) { return alterCluster(v, v.settings, ops) }

// ReplaceCluster is AlterCluster, but that the settings that no operation names
// go back to their defaults.
func ReplaceCluster(v *View, ops []ConfigOp) (Decision, error) { return alterCluster(v, nil, ops) }

func alterCluster(v *View, own map[string]string, ops []ConfigOp) (Decision, error) {
	configs, err := ofCluster(own).alter(ops)
	if err == nil {
		err = checkCluster(configs)
	}
	if err != nil || maps.Equal(configs, v.settings) {
		return Decision{}, err
	}
	set := SetCluster{configs}
	body := set.Encode()
	if len(body) > ledger.MaxBodyBytes {
		return Decision{}, fmt.Errorf("%w: settings of %d bytes", ErrTooMany, len(body))
	}
	return Decision{set.Kind(), body}, nil
}

// alter is the own settings after the operations.
func (v values) alter(ops []ConfigOp) (map[string]string, error) {
	own, seen := map[string]string{}, map[string]bool{}
	maps.Copy(own, v.own)
	for _, op := range ops {
		if seen[op.Name] {
			return nil, fmt.Errorf("%w: %s is named twice", ErrInvalidRequest, op.Name)
		}
		seen[op.Name] = true
		value, err := v.after(op)
		if err != nil {
			return nil, err
		}
		if op.Op == Unset {
			delete(own, op.Name)
		} else {
			own[op.Name] = value
		}
	}
	return own, nil
}

// after is a setting's value after an operation.
func (v values) after(op ConfigOp) (string, error) {
	d := v.table[op.Name]
	switch {
	case d == nil:
		return "", v.table.unknown(op.Name)
	case op.Op == Unset:
		return "", nil
	case op.Value == nil:
		return "", fmt.Errorf("%w: %s has a null value", ErrInvalidRequest, op.Name)
	case op.Op == Set:
		return d.parse(*op.Value)
	case op.Op != Append && op.Op != Subtract:
		return "", fmt.Errorf("%w: operation %d on %s", ErrInvalidRequest, op.Op, op.Name)
	case d.kind != TypeList:
		return "", &ConfigError{op.Name, "only a list can be appended to or subtracted from"}
	}
	items := v.list(op.Name)
	if _, why := d.kind.parse(*op.Value); why != "" {
		return "", &ConfigError{op.Name, why}
	}
	for _, item := range splitList(*op.Value) {
		if op.Op == Append {
			items = append(items, item)
		} else {
			items = slices.DeleteFunc(items, func(s string) bool { return s == item })
		}
	}
	return d.parse(strings.Join(items, ","))
}
