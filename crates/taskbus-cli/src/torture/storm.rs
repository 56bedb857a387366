//! The storm: eight clients do everything at once, are killed every few milliseconds and started again, and are stopped
//! where they are; beside them sleepers freeze beyond their leases and then try to write.
//!
//! Six of the clients are processes that use the library; two are threads here, each with a server process of its own,
//! which is what is killed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use taskbus::engine::Follow;
use taskbus_core::bus::channel::ChannelName;
use taskbus_core::bus::rules::Start;
use taskbus_core::name::Identity;
use taskbus_core::neighbourhood::ListRules;

use super::dice::Dice;
use super::hand::library::Library;
use super::hand::server::Server;
use super::life::{Death, Life};
use super::place::{Place, name};
use super::record::{Log, left_open};
use super::worker::{Orders, Part, SLEEPER_LEASE_MS};
use crate::term::failure::Failure;

/// The settings of the list: a task that is abandoned this often is parked.
pub(super) const RULES: ListRules = ListRules { policy: taskbus_core::policy::Policy::Strict, max_reclaims: 4 };
/// The name of the phase.
pub(super) const STORM: &str = "storm";

/// How big a storm is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    /// Clients that use the library.
    pub(super) libraries: u64,
    /// Clients that have a server.
    pub(super) servers: u64,
    /// Those that freeze beyond their leases.
    pub(super) sleepers: u64,
    /// How long: at least, and at most twice as long, until so many
    pub(super) time: Duration,
    /// were killed,
    pub(super) kills: u64,
    /// and so many were frozen.
    pub(super) freezes: u64,
}

/// Mean time between two kills, in milliseconds.
const KILL_MS: u64 = 9;
/// One kill in so many is of a server, which takes longer to start.
const SERVER_KILLS: u64 = 8;
/// Mean time between two clients that are stopped wherever they are, in milliseconds.
const STOP_MS: u64 = 400;
/// A sleeper or a stopped client is woken so long after its lease, in milliseconds.
const OVERSLEEP_MS: u64 = 60;
/// How often it is looked who has stopped.
const TURN: Duration = Duration::from_millis(2);

/// What was done to the clients.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weather {
    /// Processes killed with SIGKILL.
    pub(super) killed: u64,
    /// Of those, servers.
    pub(super) servers_killed: u64,
    /// Sleepers woken after their lease.
    pub(super) frozen: u64,
    /// Clients stopped wherever they were, for longer than a lease.
    pub(super) stopped: u64,
    /// Clients that ended by themselves.
    pub(super) ended: u64,
}

/// A process of the storm.
struct Process {
    orders: Orders,
    child: std::process::Child,
    /// When it is to be woken; none while it runs.
    wake: Option<Instant>,
}

/// A client with a server.
struct Speaker {
    server: Arc<Mutex<Option<Pid>>>,
    thread: JoinHandle<()>,
}

/// Makes the list, and the names of all, before anything goes wrong.
pub(super) fn prepare(place: &Place, phase: &str, size: &Size) -> Result<Vec<Identity>, Failure> {
    let store = place.store(phase);
    let first = Library::open(&store, "client-0")?;
    first.engine.create_list(&first.caller, &first.list, RULES)?;
    let names: Vec<Identity> = (0..size.libraries).map(name).collect();
    for name in &names {
        let library = Library::open(&store, name.as_str())?;
        library.engine.subscribe(&library.caller, &Follow::Channel(ChannelName::general()), Start::Now)?;
    }
    Ok(names)
}

/// Lets it blow.
pub(super) fn blow(place: &Place, size: &Size, tell: &dyn Fn(Duration)) -> Result<Weather, Failure> {
    let names = prepare(place, STORM, size)?;
    let over = Arc::new(AtomicBool::new(false));
    let mut storm = Storm::start(place, size, &names, &over)?;
    let result = storm.run(size, tell);
    over.store(true, Ordering::SeqCst);
    storm.end();
    result.map(|()| storm.weather)
}

struct Storm<'a> {
    place: &'a Place,
    dice: Dice,
    processes: Vec<Process>,
    speakers: Vec<Speaker>,
    weather: Weather,
}

impl<'a> Storm<'a> {
    fn start(place: &'a Place, size: &Size, names: &[Identity], over: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let dice = Dice::of(place.seed, u64::MAX, 0);
        let mut storm = Self { place, dice, processes: Vec::new(), speakers: Vec::new(), weather: Weather::default() };
        let parts = (0..size.libraries).map(|_| Part::Storm).chain((0..size.sleepers).map(|_| Part::Sleeper));
        for (client, part) in (0..).zip(parts) {
            let orders = orders(place, client, part, names);
            let child = place.spawn(&orders)?;
            storm.processes.push(Process { orders, child, wake: None });
        }
        let first = size.libraries + size.sleepers;
        for client in first..first + size.servers {
            storm.speakers.push(Speaker::start(orders(place, client, Part::Storm, names), over)?);
        }
        Ok(storm)
    }

    fn run(&mut self, size: &Size, tell: &dyn Fn(Duration)) -> Result<(), Failure> {
        let began = Instant::now();
        let (mut kill, mut stop) = (began, began);
        while !self.is_over(began.elapsed(), size) {
            let now = Instant::now();
            if now >= kill {
                kill = now + self.around(KILL_MS);
                self.kill_one()?;
                tell(began.elapsed());
            }
            if now >= stop {
                stop = now + self.around(STOP_MS);
                self.stop_one();
            }
            self.tend_sleepers()?;
            std::thread::sleep(kill.saturating_duration_since(Instant::now()).min(TURN));
        }
        Ok(())
    }

    fn is_over(&self, elapsed: Duration, size: &Size) -> bool {
        let enough = self.weather.killed >= size.kills && self.weather.frozen >= size.freezes;
        elapsed >= size.time && (enough || elapsed >= 2 * size.time)
    }

    /// Something around a mean time.
    fn around(&mut self, mean_ms: u64) -> Duration {
        Duration::from_micros(mean_ms * 200 + self.dice.below(mean_ms * 1_600))
    }

    fn kill_one(&mut self) -> Result<(), Failure> {
        if self.dice.below(SERVER_KILLS) == 0 && self.speakers.iter().any(Speaker::is_up) {
            let at = usize::try_from(self.dice.below(self.speakers.len() as u64)).unwrap_or(0);
            let killed = u64::from(self.speakers[at].kill());
            self.weather.killed += killed;
            self.weather.servers_killed += killed;
            return Ok(());
        }
        let candidates: Vec<usize> = self.awake().collect();
        let Some(at) = self.dice.pick(&candidates).copied() else { return Ok(()) };
        self.processes[at].kill()?;
        self.weather.killed += 1;
        self.restart(at)
    }

    /// Clients of the storm that are not stopped.
    fn awake(&self) -> impl Iterator<Item = usize> {
        let storming = self.processes.iter().enumerate().filter(|(_, process)| process.orders.part == Part::Storm);
        storming.filter(|(_, process)| process.wake.is_none()).map(|(at, _)| at)
    }

    fn restart(&mut self, at: usize) -> Result<(), Failure> {
        let process = &mut self.processes[at];
        process.orders.life += 1;
        process.wake = None;
        process.child = self.place.spawn(&process.orders)?;
        Ok(())
    }

    /// Stops a client in whatever it is doing, perhaps while it has the store to itself.
    fn stop_one(&mut self) {
        let candidates: Vec<usize> = self.awake().collect();
        let Some(at) = self.dice.pick(&candidates).copied() else { return };
        if kill_process(Pid::from_child(&self.processes[at].child), Signal::STOP).is_ok() {
            self.processes[at].wake = Some(Instant::now() + self.beyond_a_lease());
            self.weather.stopped += 1;
        }
    }

    fn beyond_a_lease(&mut self) -> Duration {
        Duration::from_millis(SLEEPER_LEASE_MS.unsigned_abs() + 5 + self.dice.below(OVERSLEEP_MS))
    }

    /// Wakes who has slept enough, notes who has fallen asleep, and starts again who ended by itself.
    fn tend_sleepers(&mut self) -> Result<(), Failure> {
        for at in 0..self.processes.len() {
            let (part, wake) = (self.processes[at].orders.part, self.processes[at].wake);
            match wake {
                Some(time) if Instant::now() >= time => {
                    self.processes[at].wake = None;
                    let _gone = kill_process(Pid::from_child(&self.processes[at].child), Signal::CONT);
                    self.weather.frozen += u64::from(part == Part::Sleeper);
                }
                Some(_) => {}
                None if part == Part::Sleeper && self.processes[at].has_stopped() => {
                    self.processes[at].wake = Some(Instant::now() + self.beyond_a_lease());
                }
                None => {
                    if self.processes[at].has_ended() {
                        self.weather.ended += 1;
                        self.restart(at)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) {
        for process in &mut self.processes {
            let _ended = process.kill();
        }
        for speaker in self.speakers.drain(..) {
            speaker.end();
        }
    }
}

impl Drop for Storm<'_> {
    /// Nobody is left behind, however the storm ends.
    fn drop(&mut self) {
        self.end();
    }
}

fn orders(place: &Place, client: u64, part: Part, names: &[Identity]) -> Orders {
    Orders {
        store: place.store(STORM),
        log: place.log(client),
        seed: place.seed,
        client,
        life: 0,
        name: name(client).to_string(),
        others: names.to_vec(),
        part,
    }
}

impl Process {
    fn kill(&mut self) -> Result<(), Failure> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed.map(drop).map_err(|error| Failure::machine("a process of the torture cannot be killed", error))
    }

    fn has_stopped(&self) -> bool {
        let pid = Pid::from_child(&self.child);
        matches!(waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG), Ok(Some(_)))
    }

    fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }
}

impl Speaker {
    fn start(orders: Orders, over: &Arc<AtomicBool>) -> Result<Self, Failure> {
        let server = Arc::new(Mutex::new(None));
        let mut log = Log::open(&orders.log).map_err(|error| Failure::machine("the log cannot be opened", error))?;
        let (known, over) = (Arc::clone(&server), Arc::clone(over));
        let thread = std::thread::spawn(move || speak(orders, &mut log, &known, &over));
        Ok(Self { server, thread })
    }

    fn is_up(&self) -> bool {
        lock(&self.server).is_some()
    }

    /// Kills the server, if there is one that nobody has waited for.
    fn kill(&self) -> bool {
        let server = lock(&self.server);
        server.is_some_and(|pid| kill_process(pid, Signal::KILL).is_ok())
    }

    fn end(self) {
        self.kill();
        let _ended = self.thread.join();
    }
}

fn lock(server: &Mutex<Option<Pid>>) -> MutexGuard<'_, Option<Pid>> {
    server.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One life after the other; each server that is killed is followed by another.
fn speak(mut orders: Orders, log: &mut Log, known: &Mutex<Option<Pid>>, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let server = Server::start(&orders.store, &orders.name, &|pid| *lock(known) = Some(pid));
        if let Ok(server) = server {
            let open = left_open(&orders.log).ok().flatten();
            let mut life = Life::begin(server, log, orders.seed, orders.client, orders.life, &orders.others);
            let died = life.live(open, || over.load(Ordering::SeqCst));
            // A server that ends by itself ends its session, and what it holds is free before its lease is over. From
            // here on the process is waited for, and its number may be given to another.
            let _gone = lock(known).take().map(|pid| kill_process(pid, Signal::KILL));
            if matches!(died, Err(Death::Log(_))) {
                return;
            }
        }
        *lock(known) = None;
        orders.life += 1;
    }
}
