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

// Type is a setting's type; the numbers are Kafka's DescribeConfigs'.
type Type int8

// Types.
const (
	TypeBool     Type = 1
	TypeString   Type = 2
	TypeInt      Type = 3
	TypeShort    Type = 4
	TypeLong     Type = 5
	TypeDouble   Type = 6
	TypeList     Type = 7
	TypeClass    Type = 8
	TypePassword Type = 9
)

// ConfigEntry describes one setting.
type ConfigEntry struct {
	Name, Value string
	Source      Source
	Synonyms    []Synonym // what gives the value, the one in force first
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
func Describe(v *View, t *Topic) []ConfigEntry { panic("todo") }

// DescribeCluster is every setting of the cluster, sorted by name: Kafka's broker configs.
func DescribeCluster(v *View) []ConfigEntry { panic("todo") }
