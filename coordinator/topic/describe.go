package topic

// Source says where a value comes from; the numbers are Kafka's DescribeConfigs'.
type Source int8

// Sources.
const (
	SourceTopic   Source = 1 // the topic's own
	SourceCluster Source = 3 // the cluster's settings: Kafka's DYNAMIC_DEFAULT_BROKER_CONFIG
	SourceStatic  Source = 4 // an agent's flags: Kafka's STATIC_BROKER_CONFIG
	SourceDefault Source = 5
)

// ConfigEntry describes one setting.
type ConfigEntry struct {
	Name, Value string
	Source      Source
	Synonyms    []Synonym // the places that its value may come from, the one in force first
	Type        Type
	ReadOnly    bool
	Sensitive   bool
	Doc         string
}

// Synonym is one place that a value may come from.
type Synonym struct {
	Name, Value string
	Source      Source
}

// Describe is every setting of a topic, sorted by name.
func Describe(v *View, t *Topic) []ConfigEntry { return ofTopic(t.Configs, v.settings).describe() }

// DescribeCluster is every setting of the cluster, sorted by name: Kafka's broker configs.
func DescribeCluster(v *View) []ConfigEntry { return ofCluster(v.settings).describe() }

func (v values) describe() []ConfigEntry {
	all := v.table.sorted()
	entries := make([]ConfigEntry, len(all))
	for i, d := range all {
		places := v.places(d)
		entries[i] = ConfigEntry{
			Name: d.name, Value: places[0].Value, Source: places[0].Source, Synonyms: places,
			Type: d.kind, ReadOnly: d.class == Refused, Doc: d.doc,
		}
	}
	return entries
}
