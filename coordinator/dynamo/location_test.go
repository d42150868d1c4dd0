package dynamo_test

import (
	"strings"
	"testing"

	"github.com/siltstone-io/siltstone/coordinator/dynamo"
)

func TestParse(t *testing.T) {
	for url, want := range map[string]dynamo.Location{
		"dynamodb://siltstone":                             {Table: "siltstone"},
		"dynamodb://My_table.7-a/":                         {Table: "My_table.7-a"},
		"dynamodb://siltstone?region=eu-west-1":            {Table: "siltstone", Region: "eu-west-1"},
		"dynamodb://abc?endpoint=http://127.0.0.1:4566":    {Table: "abc", Endpoint: "http://127.0.0.1:4566"},
		"dynamodb://abc?endpoint=https%3A%2F%2Fx&region=r": {Table: "abc", Region: "r", Endpoint: "https://x"},
	} {
		if got, err := dynamo.Parse(url); err != nil || got != want {
			t.Errorf("%s: %+v, %v", url, got, err)
		}
	}
	for url, want := range map[string]string{
		"":                                         `scheme is ""`,
		"siltstone":                                `scheme is ""`,
		"s3://siltstone":                           `scheme is "s3"`,
		"dynamodb://":                              `3 to 255 letters`,
		"dynamodb://ab":                            `3 to 255 letters`,
		"dynamodb://table:80":                      `unlike "table:80"`,
		"dynamodb://ta%20ble":                      `invalid URL escape`,
		"dynamodb://table/prefix":                  "after the table's name",
		"dynamodb://table#1":                       "after the table's name",
		"dynamodb://key:secret@table":              "credentials do not belong in it",
		"dynamodb://key:secret@table:8x":           "invalid port",
		"dynamodb://table?Region=x":                "no parameter Region",
		"dynamodb://table?region=":                 "region has 1 values, or an empty one",
		"dynamodb://table?region=a&region=b":       "region has 2 values",
		"dynamodb://table?endpoint=localhost:4566": "endpoint is no URL",
		"dynamodb://table?endpoint=http://":        "endpoint is no URL",
		"dynamodb://table?region=%zz":              "invalid URL escape",
	} {
		got, err := dynamo.Parse(url)
		if err == nil || !strings.Contains(err.Error(), want) || got != (dynamo.Location{}) {
			t.Errorf("%s: %+v, %v; want an error with %q", url, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows a secret: %v", url, err)
		}
	}
}
