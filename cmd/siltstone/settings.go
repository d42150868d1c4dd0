package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/magiconair/properties"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A server's settings come from its flags; where one is not given, from the
// environment: --flush-wait is SILTSTONE_FLUSH_WAIT; then from a file, as
// flush-wait=...; else they are the defaults.

const (
	settingsFlag   = "config"
	settingsPrefix = "SILTSTONE_"
)

// notSettings are flags that are about a call, not about a cluster.
var notSettings = []string{settingsFlag, "help", "json"}

func registerSettings(cmd *cobra.Command) {
	cmd.Flags().String(settingsFlag, "", "`file` with settings, a line like kafka=0.0.0.0:9092 each; a flag counts more, and so does the environment")
}

// settingsVariable is where the environment has a flag's value.
func settingsVariable(flag string) string {
	return settingsPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// readSettings gives the flags that are not given what the environment or the
// file says. An empty variable counts as none.
func readSettings(cmd *cobra.Command) error {
	path, _ := cmd.Flags().GetString(settingsFlag)
	from := "--" + settingsFlag
	if v := os.Getenv(settingsVariable(settingsFlag)); path == "" && v != "" {
		path, from = v, settingsVariable(settingsFlag)
	}
	file := properties.NewProperties()
	if path != "" {
		loader := properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}
		var err error
		if file, err = loader.LoadFile(path); err != nil {
			if missing, ok := errors.AsType[*fs.PathError](err); ok {
				err = missing.Err
			}
			return usagef("%s %s: %w", from, path, err)
		}
	}
	var wrong error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(notSettings, f.Name) || f.Changed || wrong != nil {
			return
		}
		variable := settingsVariable(f.Name)
		value, said := os.Getenv(variable), variable
		if value == "" {
			value, said = file.GetString(f.Name, ""), fmt.Sprintf("%s in %s", f.Name, path)
		}
		if value == "" {
			return
		}
		if err := f.Value.Set(value); err != nil {
			wrong = usagef("%s: %q: %w", said, value, err)
		}
	})
	if wrong != nil {
		return wrong
	}
	known := allSettings(cmd.Root())
	for _, name := range file.Keys() {
		if !slices.Contains(known, name) {
			return usagef("%s %s: there is no setting %q", from, path, name)
		}
	}
	return nil
}

// allSettings are those of all commands that take any: one file is for all.
func allSettings(cmd *cobra.Command) (names []string) {
	if cmd.Flags().Lookup(settingsFlag) != nil {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains(notSettings, f.Name) {
				names = append(names, f.Name)
			}
		})
	}
	for _, child := range cmd.Commands() {
		names = append(names, allSettings(child)...)
	}
	return names
}
