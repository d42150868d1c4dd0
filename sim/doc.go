// Package sim runs whole agents in virtual time under seeded faults, and
// judges what their clients saw.
//
// A world is one testing/synctest bubble. The agents in it are the real ones
// (agent.Agent behind kafka.Server); their network, bucket, coordinator and
// randomness are the world's. Everything that a node asks of the world blocks
// until the driver, the bubble's first goroutine, gives it its fate: when and
// whether it takes effect, what is answered, and when. The driver handles one
// event at a time, waits until every node is quiet, collects what they asked
// for, sorts it by (node, link, number) and draws each fate from a hash of
// (seed, node, link, number). Clients are not goroutines but state machines in
// the driver. So one seed gives one trace, which the first test shows.
//
// The history of what clients sent and were shown goes to the checker, which
// knows nothing of the agents; the ledgers and objects that they left behind
// are refolded and compared with the same history.
package sim
