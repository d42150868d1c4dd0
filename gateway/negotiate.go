package gateway

import (
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// notYetTypes are those of the contract that no reply has yet.
var notYetTypes = []string{"text/event-stream", typeBatches}

// accepted is one range of an Accept or Accept-Encoding header.
type accepted struct {
	name    string
	quality float64
}

// acceptedOf reads such a header. What cannot be read is as if it were not there.
func acceptedOf(values []string) []accepted {
	var all []accepted
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			name, params, err := mime.ParseMediaType(one)
			if err != nil {
				continue
			}
			a := accepted{name, 1}
			if q, err := strconv.ParseFloat(params["q"], 64); err == nil {
				a.quality = q
			}
			all = append(all, a)
		}
	}
	return all
}

// qualityOf is how much something is wanted: the nearest range that has it counts.
func qualityOf(all []accepted, name string) float64 {
	main, _, _ := strings.Cut(name, "/")
	quality, nearest := 0.0, 0
	for _, a := range all {
		near := 0
		switch a.name {
		case name:
			near = 3
		case main + "/*":
			near = 2
		case "*/*", "*":
			near = 1
		}
		if near > nearest {
			quality, nearest = a.quality, near
		}
	}
	return quality
}

// negotiate is the type of the reply, of those on offer, that is wanted most;
// the first where the request does not say.
func negotiate(r *http.Request, offers ...string) (string, error) {
	values := r.Header.Values("Accept")
	if len(values) == 0 {
		return offers[0], nil
	}
	all := acceptedOf(values)
	best, most := "", 0.0
	for _, o := range offers {
		if q := qualityOf(all, o); q > most {
			best, most = o, q
		}
	}
	if best != "" {
		return best, nil
	}
	for _, t := range notYetTypes {
		if qualityOf(all, t) > 0 {
			return "", fmt.Errorf("%w: replies of type %s", errNotImplemented, t)
		}
	}
	return "", fmt.Errorf("%w: the reply is %s, and Accept is %q", errNotAcceptable, strings.Join(offers, " or "), strings.Join(values, ", "))
}
