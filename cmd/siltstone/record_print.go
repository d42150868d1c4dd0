package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"
)

// printer prints a record, whole, with what parts it from the next.
type printer func(w *bufio.Writer, r *kgo.Record) error

// printerFlags choose one.
type printerFlags struct {
	keys, details, json bool
	format              string
}

func (p *printerFlags) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&p.keys, "keys", "k", false, "print key, tab, value")
	f.BoolVarP(&p.details, "details", "d", false, "print time, partition, offset, key, headers, value")
	f.StringVarP(&p.format, "format", "f", "", "print in this `format`, see above")
	asJSON(cmd, &p.json)
}

func (p *printerFlags) printer() (printer, error) {
	layouts := []struct {
		given  bool
		layout string
	}{
		{p.keys, `%k\t%v\n`},
		{p.details, ""},
		{p.format != "", p.format},
		{p.json, ""},
	}
	layout, given := `%v\n`, 0
	for _, l := range layouts {
		if l.given {
			layout = l.layout
			given++
		}
	}
	switch {
	case given > 1:
		return nil, usagef("give one of --keys, --details, --format and --json")
	case p.json:
		return printJSONRecord, nil
	case p.details:
		return printDetails, nil
	}
	format, err := kgo.NewRecordFormatter(layout)
	if err != nil {
		return nil, usagef("--format: %w", err)
	}
	return func(w *bufio.Writer, r *kgo.Record) error {
		_, err := w.Write(format.AppendRecord(w.AvailableBuffer(), r))
		return err
	}, nil
}

func printJSONRecord(w *bufio.Writer, r *kgo.Record) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(newJSONRecord(r))
}

func printDetails(w *bufio.Writer, r *kgo.Record) error {
	headers := make([]string, len(r.Headers))
	for i, h := range r.Headers {
		headers[i] = h.Key + "=" + string(h.Value)
	}
	_, err := fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\n",
		r.Timestamp.UTC().Format("2006-01-02T15:04:05.000Z"), r.Partition, r.Offset, r.Key, strings.Join(headers, ","), r.Value)
	return err
}
