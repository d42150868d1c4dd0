package topic

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Class says what Siltstone does with a setting that Kafka has.
type Class int8

// Classes.
const (
	Obeyed  Class = iota
	Pending       // checked, stored and described; in force with what its Doc names
	Local         // taken, with the meaning that its Doc states: it is of Kafka's local files and threads
	Refused       // only its default is taken
)

// Type is a setting's type; the numbers are Kafka's DescribeConfigs'.
type Type int8

// Types.
const (
	TypeBool   Type = 1
	TypeString Type = 2
	TypeInt    Type = 3
	TypeLong   Type = 5
	TypeDouble Type = 6
	TypeList   Type = 7
)

// definition is one setting that there is.
type definition struct {
	name    string
	kind    Type
	initial string              // the default
	allowed func(string) string // says why a value of the right type is refused; nil: none is
	class   Class
	cluster string // the cluster's setting that is the default of a topic's; empty: there is none
	doc     string
}

// parse checks a value, and returns it as it is stored.
func (d *definition) parse(raw string) (string, error) {
	value, why := d.kind.parse(raw)
	if why == "" && d.class == Refused && value != d.initial {
		why = "only " + strconv.Quote(d.initial) + " is taken. " + d.doc
	}
	if why == "" && d.allowed != nil {
		why = d.allowed(value)
	}
	if why != "" {
		return "", &ConfigError{d.name, fmt.Sprintf("%q is refused: %s", raw, why)}
	}
	return value, nil
}

// parse takes what Kafka's ConfigDef takes, and says why a value is not of the type.
func (t Type) parse(raw string) (value, why string) {
	value = strings.TrimSpace(raw)
	switch t {
	case TypeBool:
		if value = strings.ToLower(value); value != "true" && value != "false" {
			return "", "it is not true or false"
		}
	case TypeInt, TypeLong:
		bits := map[Type]int{TypeInt: 32, TypeLong: 64}[t]
		n, err := strconv.ParseInt(value, 10, bits)
		if err != nil {
			return "", fmt.Sprintf("it is not an integer of %d bits", bits)
		}
		value = strconv.FormatInt(n, 10)
	case TypeDouble:
		f, err := strconv.ParseFloat(value, 64)
		if err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return "", "it is not a number"
		}
		value = strconv.FormatFloat(f, 'g', -1, 64)
	case TypeList:
		items := splitList(value)
		if slices.Contains(items, "") {
			return "", "an item of the list is empty"
		}
		value = strings.Join(items, ",")
	}
	return value, ""
}

// splitList takes a list apart; an item counts once.
func splitList(value string) []string {
	if value == "" {
		return nil
	}
	var items []string
	for item := range strings.SplitSeq(value, ",") {
		if item = strings.TrimSpace(item); !slices.Contains(items, item) {
			items = append(items, item)
		}
	}
	return items
}

// between allows numbers from low to high, and some others.
func between(low, high int64, others ...int64) func(string) string {
	return func(value string) string {
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case err == nil && (n >= low && n <= high || slices.Contains(others, n)):
			return ""
		case high == math.MaxInt64:
			return fmt.Sprintf("it is less than %d", low)
		}
		return fmt.Sprintf("it is not between %d and %d", low, high)
	}
}

func atLeast(low int64) func(string) string { return between(low, math.MaxInt64) }

// oneOf allows these words only.
func oneOf(words ...string) func(string) string {
	return func(value string) string {
		if slices.Contains(words, value) {
			return ""
		}
		return "it is none of " + strings.Join(words, ", ")
	}
}

// listOf allows lists of these words only.
func listOf(words ...string) func(string) string {
	return func(value string) string {
		for _, item := range splitList(value) {
			if why := oneOf(words...)(item); why != "" {
				return why
			}
		}
		return ""
	}
}

// ratio allows numbers from 0 to 1.
func ratio(value string) string {
	if f, err := strconv.ParseFloat(value, 64); err != nil || f < 0 || f > 1 {
		return "it is not between 0 and 1"
	}
	return ""
}

// definitions finds settings by their names.
type definitions map[string]*definition

func define(all []definition) definitions {
	d := definitions{}
	for i := range all {
		d[all[i].name] = &all[i]
	}
	return d
}

// parse checks a value of a setting, and returns it as it is stored.
func (d definitions) parse(name, raw string) (string, error) {
	def, ok := d[name]
	if !ok {
		return "", d.unknown(name)
	}
	return def.parse(raw)
}

func (d definitions) unknown(name string) error {
	return &ConfigError{name, "there is no such setting"}
}

// sorted is every one of them, by name.
func (d definitions) sorted() []*definition {
	all := make([]*definition, 0, len(d))
	for _, def := range d {
		all = append(all, def)
	}
	slices.SortFunc(all, func(a, b *definition) int { return strings.Compare(a.name, b.name) })
	return all
}

// WaitsForJobs says that a topic setting is checked, stored and described, but
// not in force before the jobs are there.
func WaitsForJobs(name string) bool {
	d, ok := topicSettings[name]
	return ok && d.class == Pending
}
