//! What the tools of other products have in common: nobody gives a name or a list, and one call may be several
//! commands.

use std::sync::Arc;

use taskbus::engine::{Engine, Error, Overview, Together};
use taskbus_core::command::Command;
use taskbus_core::drop_in::Asking;
use taskbus_core::id::TaskId;
use taskbus_core::name::{Identity, ListName};
use taskbus_core::neighbourhood::{ListRules, Look, Neighbourhood};
use taskbus_core::refusal::{Conflict, Missing, Refusal};

use crate::mcp::desk::{Asked, Desk};
use crate::options::ToolSet;
use crate::wire::error::Failure;

/// A call of such a tool.
pub(super) struct DropIn<'a> {
    desk: &'a Desk,
    asked: &'a Asked<'a>,
    pub(super) engine: Arc<Engine>,
    pub(super) list: ListName,
}

/// What a call is about.
#[derive(Clone, Copy)]
pub(super) enum About<'a> {
    /// A task to be made. A list that is not there yet is made first: whoever set this process up chose its name.
    New,
    /// A task that is there, or is not, as when there is no list.
    Task(&'a TaskId),
}

/// The commands that a call means, given who calls, the policy, and the list as it is.
type Meant<'a> = dyn FnMut(Asking<'_>, &dyn Neighbourhood) -> Look<Vec<Command>> + 'a;

impl<'a> DropIn<'a> {
    /// Opens the store, if that was not done.
    pub(super) fn begin(desk: &'a Desk, asked: &'a Asked<'a>, set: ToolSet) -> Result<Self, Failure> {
        let engine = desk.engine()?;
        Ok(Self { desk, asked, engine, list: desk.own_list(set)? })
    }

    /// Runs what the call means, under a name of the caller's. One that somebody else took while this process slept is
    /// given up for another.
    pub(super) fn run(
        &self,
        about: About<'_>,
        show: Option<usize>,
        meant: &mut Meant<'_>,
    ) -> Result<Together, Failure> {
        let (mut renewed, mut made) = (false, false);
        loop {
            let who = self.desk.people.acting(None, self.asked, &self.engine)?.name;
            let mut commands =
                |list: &dyn Neighbourhood| meant(Asking { caller: &who, policy: list.rules()?.policy }, list);
            match self.engine.execute_together(&who, &self.list, &mut commands, show) {
                Err(Error::Refused(Refusal::NotRegistered(_))) if !renewed => {
                    self.desk.people.forget(&who);
                    renewed = true;
                }
                Err(Error::Refused(Refusal::NotFound(Missing::List { .. }))) if !made => match about {
                    About::New => {
                        self.make_list(&who)?;
                        made = true;
                    }
                    About::Task(id) => return Err(Refusal::NotFound(Missing::Task { id: id.clone() }).into()),
                },
                answer => return Ok(answer?),
            }
        }
    }

    /// Somebody else may have made it in between, with rules of theirs: good enough.
    fn make_list(&self, who: &Identity) -> Result<(), Failure> {
        match self.engine.create_list(who, &self.list, ListRules::default()) {
            Ok(_) | Err(Error::Refused(Refusal::Conflict(Conflict::ListExists { .. }))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The list at a glance; none if there is none yet. Reading takes no name.
    pub(super) fn overview(&self, limit: usize) -> Result<Option<Overview>, Failure> {
        match self.engine.overview(None, &self.list, limit) {
            Err(Error::Refused(Refusal::NotFound(Missing::List { .. }))) => Ok(None),
            overview => Ok(Some(overview?)),
        }
    }
}
