package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"
)

const defaultMetrics = "http://" + defaultHTTP + "/metrics"

// bill is what an agent has used in some time, at list prices.
type bill struct {
	Seconds float64 `json:"seconds"`
	// WrittenBytes are record batches as producers sent them.
	WrittenBytes float64    `json:"written_bytes"`
	PricesAsOf   string     `json:"prices_as_of"`
	Region       string     `json:"region"`
	Lines        []billLine `json:"lines"`
	Total        dollars    `json:"total"`
}

type billLine struct {
	Price   string  `json:"price"` // its name in the table of prices
	What    string  `json:"what"`
	Count   float64 `json:"count"`
	PerHour float64 `json:"per_hour"`
	Cost    dollars `json:"cost"`
}

type dollars struct {
	PerHour float64 `json:"usd_per_hour"`
	// PerGiB is of records written; null: none were.
	PerGiB *float64 `json:"usd_per_gib"`
}

func newCost() *cobra.Command {
	var (
		json           bool
		metrics, table string
		sample         time.Duration
	)
	cmd := &cobra.Command{
		Use:   "cost",
		Short: "Show what an agent's requests cost, at list prices",
		Long: `Show what an agent's requests cost, at list prices.

The agent counts each request to the bucket, and each unit of the coordinator's
table, where it is made: its page of metrics has the counts. The prices are those
of S3 and of DynamoDB on demand, from a table that comes with the program and
says its date; --prices names a file with others, such as

  {"as_of": "2026-12-02", "region": "eu-central-1",
   "prices": {"s3_put": {"usd": 0.0054}, "dynamodb_write": {"usd": 0.7625}}}

Requests that failed count too. Storage, functions, bytes between zones and the
machines are not in it.`,
		Example: "  siltstone cost\n" +
			"  siltstone cost --metrics http://10.0.1.7:8080/metrics --sample 1m\n" +
			"  siltstone cost --prices ours.json --json | jq .total.usd_per_hour",
		Args: takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if sample < 0 {
				return usagef("--sample %s is below 0", sample)
			}
			prices, err := loadPrices(table)
			if err != nil {
				return err
			}
			used, took, err := measureUsage(cmd.Context(), metrics, sample)
			if err != nil {
				return err
			}
			b := newBill(used, took, prices)
			if json {
				return printJSON(cmd.OutOrStdout(), b)
			}
			return b.print(cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.StringVar(&metrics, "metrics", defaultMetrics, "`URL` of an agent's metrics")
	f.DurationVar(&sample, "sample", 0, "`time` between two looks, whose difference counts (default since the agent started)")
	f.StringVar(&table, "prices", "", "`file` with other prices")
	asJSON(cmd, &json)
	return cmd
}

// measureUsage is what was used within the sample, or since the agent started.
func measureUsage(ctx context.Context, url string, sample time.Duration) (usage, time.Duration, error) {
	begin := time.Now()
	before, err := scrape(ctx, url)
	if err != nil {
		return usage{}, 0, err
	}
	if sample == 0 {
		return before, before.at.Sub(before.started), nil
	}
	select {
	case <-ctx.Done():
		return usage{}, 0, ctx.Err()
	case <-time.After(sample):
	}
	took := time.Since(begin)
	now, err := scrape(ctx, url)
	if err != nil {
		return usage{}, 0, err
	}
	if !now.started.Equal(before.started) {
		return usage{}, 0, fmt.Errorf("the agent was started again meanwhile: try once more")
	}
	return now.since(before), took, nil
}

func newBill(u usage, took time.Duration, prices *priceTable) bill {
	b := bill{Seconds: took.Seconds(), WrittenBytes: u.written, PricesAsOf: prices.AsOf, Region: prices.Region, Lines: []billLine{}}
	hours := max(took, time.Second).Hours() // an agent that was started this second
	amount := func(usd float64) dollars {
		d := dollars{PerHour: usd / hours}
		if u.written > 0 {
			perGiB := usd / (u.written / (1 << 30))
			d.PerGiB = &perGiB
		}
		return d
	}
	var sum float64
	for _, name := range pricedUsage {
		p, count := prices.Prices[name], u.counts[name]
		usd := count * p.each()
		b.Lines = append(b.Lines, billLine{name, p.What, count, count / hours, amount(usd)})
		sum += usd
	}
	b.Total = amount(sum)
	return b
}

func (b *bill) print(w io.Writer) error {
	rows := [][]string{}
	for _, l := range b.Lines {
		rows = append(rows, append([]string{l.What, humanize.CommafWithDigits(l.Count, 0), humanize.CommafWithDigits(l.PerHour, 0)}, l.Cost.columns()...))
	}
	rows = append(rows, append([]string{"total", "", ""}, b.Total.columns()...))
	if err := table(w, []string{"", "COUNT", "PER HOUR", "$ PER HOUR", "$ PER GIB"}, rows); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nin %s, with %s of records written; list prices of %s, %s\n",
		roughly(b.Seconds), humanize.IBytes(uint64(b.WrittenBytes)), b.Region, b.PricesAsOf)
	return nil
}

func (d dollars) columns() []string {
	perGiB := "-"
	if d.PerGiB != nil {
		perGiB = fmt.Sprintf("%.6f", *d.PerGiB)
	}
	return []string{fmt.Sprintf("%.6f", d.PerHour), perGiB}
}
