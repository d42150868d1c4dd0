package faultproxy

import (
	"encoding/json"
	"net/http"
)

// maxFaultsBytes is of what Control reads.
const maxFaultsBytes = 1 << 20

// listedFault is a fault as Control shows it.
type listedFault struct {
	Fault
	Taken int `json:"taken"`
}

// Control is for whoever runs the proxy as a process:
//
//	GET    /faults    the faults, and how many requests each has taken
//	PUT    /faults    replaces them: a list of Fault in JSON
//	GET    /requests  requests by operation and second
//	DELETE /requests  sets these to 0
func (p *Proxy) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, p.list()) })
	mux.HandleFunc("PUT /faults", func(w http.ResponseWriter, r *http.Request) {
		var faults []Fault
		d := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxFaultsBytes))
		d.DisallowUnknownFields()
		err := d.Decode(&faults)
		if err == nil {
			err = p.Set(faults...)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		writeJSON(w, p.list())
	})
	mux.HandleFunc("GET /requests", func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, p.counts.all()) })
	mux.HandleFunc("DELETE /requests", func(w http.ResponseWriter, _ *http.Request) {
		p.ResetCounts()
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

func (p *Proxy) list() []listedFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	faults := make([]listedFault, 0, len(p.rules))
	for _, r := range p.rules {
		faults = append(faults, listedFault{r.Fault, r.taken})
	}
	return faults
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // whoever asked has gone
}
