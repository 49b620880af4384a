//! The proposer's way to an owner: every way in which no ruling comes is a denial that says so (P-8).
//!
//! | the port answers             | the proposal is                        |
//! |------------------------------|----------------------------------------|
//! | a ruling                     | ruled                                  |
//! | no room, or not taken up     | denied: overloaded                     |
//! | the deadline passed          | denied: timed out                      |
//! | dropped in a crash           | denied: authorization restarted        |
//! | closed for good              | denied: authorization unavailable      |
//! | suspended (degraded)         | denied: authorization degraded         |

use std::fmt;
use std::time::Duration;

use tipstaff_core::clock::Deadline;
use tipstaff_core::interception::DenialCause;
use tipstaff_core::operation::{Authorizer, Owner, Proposal, Ruling};

use super::owner::{CompletionTicket, Proposing, denied};
use crate::port::{CallError, Port};

/// How much longer the proposer waits than its chain may take: a chain that runs out of time answers with its own report.
const GRACE: Duration = Duration::from_millis(250);

/// Asks the owner of one sort of operation. Cheap to clone.
pub(crate) struct Rulings<O: Owner>(pub(crate) Port<Proposing<O>>);

impl<O: Owner> Authorizer<O> for Rulings<O> {
    type Place = CompletionTicket<O>;

    async fn propose(&self, proposal: Proposal<O>) -> Ruling<O, CompletionTicket<O>> {
        let deadline = Deadline::at(proposal.deadline().instant() + GRACE);
        match self.0.call(deadline, |reply| Proposing::Propose(proposal, reply)).await {
            Ok(ruling) => ruling,
            Err(CallError::Full(_) | CallError::NotAdmitted(_)) => {
                denied(DenialCause::Overloaded, "the authorization actor had no place free in time")
            }
            Err(CallError::Deadline { .. }) => denied(DenialCause::TimedOut, "no ruling before the proposal's deadline"),
            Err(CallError::Crashed) => {
                denied(DenialCause::AuthorizationRestarted, "the authorization actor crashed while it held the proposal")
            }
            Err(CallError::Closed(_)) => denied(DenialCause::AuthorizationUnavailable, "the authorization actor has stopped"),
        }
    }
}

impl<O: Owner> Clone for Rulings<O> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<O: Owner> fmt::Debug for Rulings<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rulings").field(&O::NAME).finish()
    }
}
