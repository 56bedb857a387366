//! `setup`: one client after the other, into its own configuration or out of it.

use super::args;
use crate::setup::{CLIENTS, Client, Done, Overview, Setup, Way, named};
use crate::term::failure::Failure;
use crate::term::report::Report;

/// Sets clients up, undoes that, or says how far each is.
pub(crate) fn setup(args: &args::Setup) -> Result<Box<dyn Report>, Failure> {
    let setup = Setup::here()?;
    let way = if args.undo { Way::Undo } else { Way::Setup };
    let clients: Vec<&Client> = match (args.all, args.undo) {
        _ if !args.clients.is_empty() => args.clients.iter().filter_map(|name| named(name)).collect(),
        (true, false) => setup.found().collect(),
        (_, true) => CLIENTS.iter().collect(),
        (false, false) if args.dry_run => return Err(Failure::usage("--dry-run of what? Name a client, or --all")),
        (false, false) => return Ok(Box::new(Overview::of(&setup))),
    };
    if clients.is_empty() {
        return Err(Failure::usage(
            "none of the clients was found on this machine; name one to set it up all the same",
        ));
    }
    Ok(Box::new(run(&setup, &clients, way, args.dry_run, args.clients.is_empty())?))
}

/// A client that is only one of all of them is left out when there is nothing to do for it.
fn run(setup: &Setup, clients: &[&'static Client], way: Way, dry: bool, all: bool) -> Result<Vec<Done>, Failure> {
    let done = clients.iter().map(|client| setup.run(client, way, dry));
    let shown = |done: &Result<Done, Failure>| !all || way == Way::Setup || done.as_ref().map_or(true, Done::is_news);
    done.filter(shown).collect()
}
