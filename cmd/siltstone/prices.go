package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// listPrices is the table that comes with the program.
//
//go:embed prices.json
var listPrices []byte

// price is what so many units of something cost.
type price struct {
	What   string  `json:"what"`
	USD    float64 `json:"usd"`
	Per    float64 `json:"per"`
	Unit   string  `json:"unit"`
	Source string  `json:"source"`
}

// each is the price of one unit.
func (p price) each() float64 { return p.USD / p.Per }

// priceTable is a dated list of prices, by their names in prices.json.
type priceTable struct {
	AsOf   string           `json:"as_of"` // a date
	Region string           `json:"region"`
	Prices map[string]price `json:"prices"`
}

// loadPrices is the table that comes with the program, with what a file of the
// same form says instead; no file: as it is. The file has some of the prices,
// and of each at least usd.
func loadPrices(file string) (*priceTable, error) {
	t, err := decodePrices(listPrices)
	if err != nil {
		return nil, fmt.Errorf("prices.json: %w", err)
	}
	if file == "" {
		return t, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	own, err := decodeOwn(b, t)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return own, nil
}

// decodePrices decodes a table that says everything.
func decodePrices(b []byte) (*priceTable, error) {
	var t priceTable
	if err := strictly(b, &t); err != nil {
		return nil, err
	}
	return &t, t.validate()
}

// decodeOwn decodes a table that says what differs from another.
func decodeOwn(b []byte, from *priceTable) (*priceTable, error) {
	var own struct {
		AsOf   string                     `json:"as_of"`
		Region string                     `json:"region"`
		Prices map[string]json.RawMessage `json:"prices"`
	}
	if err := strictly(b, &own); err != nil {
		return nil, err
	}
	t := priceTable{AsOf: own.AsOf, Region: own.Region, Prices: maps.Clone(from.Prices)}
	for name, text := range own.Prices {
		p, known := t.Prices[name]
		if !known {
			names := slices.Sorted(maps.Keys(from.Prices))
			return nil, fmt.Errorf("there is no price %q: the names are %s", name, strings.Join(names, ", "))
		}
		p.USD = -1 // it has to be said
		if err := strictly(text, &p); err != nil {
			return nil, fmt.Errorf("price %q: %w", name, err)
		}
		t.Prices[name] = p
	}
	return &t, t.validate()
}

func strictly(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

func (t *priceTable) validate() error {
	if t.AsOf == "" || t.Region == "" {
		return fmt.Errorf("a table of prices says as_of, a date, and region")
	}
	for name, p := range t.Prices {
		if p.USD < 0 || p.Per <= 0 || p.What == "" || p.Unit == "" {
			return fmt.Errorf("price %q: usd is at least 0, per above 0, and there are what and unit", name)
		}
	}
	return nil
}
