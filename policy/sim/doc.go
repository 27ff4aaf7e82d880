// SPDX-License-Identifier: Apache-2.0

// Package sim runs weir's own decisions in virtual time: queues, buckets, shares and rates as they are in production, with
// nothing but the clock, the network and the provider made up. An experiment gives the same report for the same seed on
// every machine.
//
// A scenario is the same for one question: a policy, a timeline and expectations in a text ([ParseScenario]). Each file in
// the folder scenarios is shown by weir simulate under its name, with its first comment as the title, and run by a test.
package sim
