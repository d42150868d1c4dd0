package dynamo

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
)

// Location says where a table is.
type Location struct {
	Table    string
	Region   string // empty: AWS_REGION, or the profile's
	Endpoint string // empty: AWS_ENDPOINT_URL_DYNAMODB, or AWS's own
}

// tableName is what DynamoDB allows.
var tableName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{3,255}$`)

// Parse reads a URL: dynamodb://TABLE, with the parameters region and endpoint
// if need be. Its errors do not show the URL, for what is wrong may be a secret
// in it.
func Parse(s string) (Location, error) {
	l, err := parse(s)
	if err != nil {
		return Location{}, fmt.Errorf("a table's URL is like dynamodb://my-table?region=eu-west-1: %w", err)
	}
	return l, nil
}

func parse(s string) (l Location, err error) {
	u, err := url.Parse(s)
	if wrong, ok := errors.AsType[*url.Error](err); ok {
		return l, wrong.Err
	}
	switch {
	case u.Scheme != "dynamodb":
		return l, fmt.Errorf("this one's scheme is %q", u.Scheme)
	case u.User != nil:
		return l, errors.New("credentials do not belong in it, but in the environment or in AWS's own files")
	case u.Path != "" && u.Path != "/" || u.Fragment != "":
		return l, errors.New("there is something after the table's name")
	case !tableName.MatchString(u.Host):
		return l, fmt.Errorf("a table's name has 3 to 255 letters, digits, '_', '-' and '.', unlike %q", u.Host)
	}
	l.Table = u.Host
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return l, err
	}
	for name, values := range query {
		if len(values) != 1 || values[0] == "" {
			return l, fmt.Errorf("parameter %s has %d values, or an empty one", name, len(values))
		}
		switch name {
		case "region":
			l.Region = values[0]
		case "endpoint":
			l.Endpoint = values[0]
		default:
			return l, fmt.Errorf("there is no parameter %s, only region and endpoint", name)
		}
	}
	if l.Endpoint == "" {
		return l, nil
	}
	if e, err := url.Parse(l.Endpoint); err != nil || e.Scheme != "http" && e.Scheme != "https" || e.Host == "" {
		return l, errors.New("its endpoint is no URL like http://127.0.0.1:4566")
	}
	return l, nil
}
