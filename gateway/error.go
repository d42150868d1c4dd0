package gateway

import (
	"encoding/json"
	"net/http"
)

// Error is the body of every answer that is not a success: error_code and
// message are those of the REST proxies of Kafka, v2 and v3; the rest is ours.
type Error struct {
	Number    int            `json:"error_code"` // the HTTP status, or five digits that begin with it
	Message   string         `json:"message"`
	Code      string         `json:"code"`
	Retriable bool           `json:"retriable"`
	Details   map[string]any `json:"details"`
}

func writeError(w http.ResponseWriter, status int, e Error) {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "1")
	}
	writeJSON(w, status, e)
}

// writeJSON answers with a small body.
func writeJSON(w http.ResponseWriter, status int, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "encoding an answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(body, '\n'))
}
