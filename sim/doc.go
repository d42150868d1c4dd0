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
// The clients: producers, plain and idempotent (they pipeline, time out, send
// again, give up, go on with another epoch or id); consumers that read
// partitions, or everything once; members of groups (dynamic and static, eager
// and cooperative, of many versions; they read and commit, sleep through their
// sessions, leave, die, are replaced while they live, and speak late as what
// they were); admins that look at groups, set and delete offsets, delete
// groups, records and topics.
//
// A seed has a mood. Stormy is the rule: any fault, at any time, then none, and
// everybody has to get what they want within 30 seconds. In a calm world
// nothing goes wrong; in a steady one agents follow one another in an orderly
// way, and members of groups must not notice.
//
// Agents talk over links that are the world's too (peers.go, links.go): slow, cut,
// stalled, refused, parted one way or both. What a node hears on them comes one
// event at a time.
//
// The history of what clients sent and were shown goes to the checker, which
// knows nothing of the agents; the ledgers and objects that they left behind
// are refolded and compared with the same history. A complaint begins with the
// number of the invariant in docs/design.md, section 8, or says liveness or calm.
package sim
