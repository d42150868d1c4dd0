package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// asJSON registers --json: the same listing, for programs.
func asJSON(cmd *cobra.Command, on *bool) {
	cmd.Flags().BoolVar(on, "json", false, "print JSON")
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// table prints rows under a heading, in columns.
func table(w io.Writer, heading []string, rows [][]string) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, strings.Join(heading, "\t"))
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	return tw.Flush()
}

// plural is "1 record", "2 records".
func plural[N ~int | ~int32 | ~int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	ending := "s"
	if strings.HasSuffix(noun, "ch") {
		ending = "es"
	}
	return fmt.Sprintf("%d %s%s", n, noun, ending)
}
