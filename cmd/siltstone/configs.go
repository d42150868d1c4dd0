package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/siltstone-io/siltstone/coordinator/topic"
)

// describedConfig is a config of a topic, or a setting of the cluster, as
// --json prints it.
type describedConfig struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Set   bool   `json:"set"` // there; else it is a default
}

// describeTopicConfigs are all of a topic's.
func describeTopicConfigs(ctx context.Context, adm *kadm.Client, name string) ([]describedConfig, error) {
	resources, err := adm.DescribeTopicConfigs(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := resources.On(name, nil)
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		return nil, explain(name, r.Err, r.ErrMessage)
	}
	return describedConfigs(r.Configs, kmsg.ConfigSourceDynamicTopicConfig), nil
}

func describedConfigs(all []kadm.Config, set ...kmsg.ConfigSource) []describedConfig {
	configs := []describedConfig{}
	for _, c := range all {
		configs = append(configs, describedConfig{c.Key, c.MaybeValue(), slices.Contains(set, c.Source)})
	}
	return configs
}

// printConfigs prints those that are set, or all.
func printConfigs(w io.Writer, configs []describedConfig, all bool) {
	for _, c := range configs {
		if c.Set || all {
			fmt.Fprintf(w, "config %s=%s\n", c.Name, c.Value)
		}
	}
}

// configFlags are --config and, where it is about something that exists,
// --delete-config.
type configFlags struct{ set, unset []string }

func (f *configFlags) register(cmd *cobra.Command, known []topic.ConfigEntry) {
	cmd.Flags().StringArrayVarP(&f.set, "config", "c", nil, "set a config: `name=value`; may be repeated")
	completeFlag(cmd, "config", completeConfigs(known, "="))
}

func (f *configFlags) registerDelete(cmd *cobra.Command, known []topic.ConfigEntry) {
	cmd.Flags().StringArrayVar(&f.unset, "delete-config", nil, "give the config of this `name` its default again; may be repeated")
	completeFlag(cmd, "delete-config", completeConfigs(known, ""))
}

// values are what --config sets.
func (f *configFlags) values() (map[string]*string, error) {
	configs := map[string]*string{}
	for _, s := range f.set {
		name, value, ok := strings.Cut(s, "=")
		if !ok || name == "" {
			return nil, usagef("--config %s is not name=value", s)
		}
		configs[name] = &value
	}
	return configs, nil
}

// changes are what both flags ask for, by name.
func (f *configFlags) changes() ([]kadm.AlterConfig, error) {
	configs, err := f.values()
	if err != nil {
		return nil, err
	}
	for _, name := range f.unset {
		if _, also := configs[name]; also {
			return nil, usagef("--config and --delete-config are both about %s", name)
		}
		configs[name] = nil
	}
	var changes []kadm.AlterConfig
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: name, Value: configs[name]}
		if change.Value == nil {
			change.Op = kadm.DeleteConfig
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// describeChanges is what is said of changes that are made.
func describeChanges(changes []kadm.AlterConfig) (said []string) {
	for _, c := range changes {
		if c.Op == kadm.DeleteConfig {
			said = append(said, c.Name+" is its default")
		} else {
			said = append(said, c.Name+"="+*c.Value)
		}
	}
	return said
}

// printWaiting names those configs that nothing carries out yet.
func printWaiting(w io.Writer, configs map[string]*string) {
	waiting := slices.DeleteFunc(slices.Sorted(maps.Keys(configs)), func(name string) bool {
		return !topic.WaitsForJobs(name)
	})
	if len(waiting) > 0 {
		fmt.Fprintf(w, "%s: stored, and in force once the jobs for retention and compaction run\n", strings.Join(waiting, ", "))
	}
}

// topicConfigs are all that this release knows.
func topicConfigs() []topic.ConfigEntry { return topic.Describe(topic.New().View(), &topic.Topic{}) }

// clusterSettings are all that this release knows.
func clusterSettings() []topic.ConfigEntry { return topic.DescribeCluster(topic.New().View()) }
